// The company drawn: zoom, find, and moving from agent to agent by keyboard. Without it: a list of links.
(() => {
  "use strict";
  const room = document.getElementById("company");
  if (!room) return;
  const sheet = room.querySelector(".nx-company-sheet");
  const search = document.getElementById("company-search");
  const found = document.getElementById("company-found");
  const all = () => [...room.querySelectorAll("a.nx-agent")];
  let scale = 1;

  function zoom(to) {
    scale = Math.min(2, Math.max(0.25, to));
    sheet.style.transform = `scale(${scale})`;
    sheet.style.marginBottom = `${(scale - 1) * sheet.offsetHeight}px`;
  }

  const fit = () => zoom(Math.min(1, (room.clientWidth - 48) / Number(sheet.dataset.width)));

  function by(step) {
    if (step === 0) fit();
    else zoom(scale * (step > 0 ? 1.2 : 1 / 1.2));
  }

  function filter() {
    const words = search.value.trim().toLowerCase();
    const pressed = document.querySelector('#company-counts [aria-pressed="true"]');
    const condition = pressed ? pressed.dataset.condition : "";
    const hits = all().filter((card) => {
      const hit = card.dataset.words.toLowerCase().includes(words) && (!condition || card.dataset.condition === condition);
      card.parentElement.classList.toggle("nx-dim", !hit);
      return hit;
    });
    found.textContent = words || condition ? nexusText("%(count)s found", { count: hits.length }) : "";
    return hits;
  }

  // The nearest card in the direction of an arrow key.
  function next(from, key) {
    const here = from.getBoundingClientRect();
    const across = key === "ArrowLeft" || key === "ArrowRight";
    const sign = key === "ArrowRight" || key === "ArrowDown" ? 1 : -1;
    let best = null;
    for (const card of all()) {
      const there = card.getBoundingClientRect();
      const dx = there.left - here.left, dy = there.top - here.top;
      const along = sign * (across ? dx : dy), aside = Math.abs(across ? dy : dx);
      if (along < 8) continue;
      const far = along + 2 * aside;
      if (!best || far < best.far) best = { card, far };
    }
    return best && best.card;
  }

  document.querySelectorAll("[data-zoom]").forEach((button) =>
    button.addEventListener("click", () => by(Number(button.dataset.zoom))));
  document.getElementById("company-print").addEventListener("click", () => window.print());
  document.querySelectorAll("#company-counts button").forEach((button) =>
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      document.querySelectorAll("#company-counts button").forEach((each) => each.setAttribute("aria-pressed", "false"));
      button.setAttribute("aria-pressed", String(on));
      filter();
    }));
  search.addEventListener("input", filter);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { const [first] = filter(); if (first) first.focus(); }
    if (event.key === "Escape") { search.value = ""; filter(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { "+": 1, "-": -1, 0: 0 }[event.key];
    if (step !== undefined) by(step);
    else if (event.key === "/") { event.preventDefault(); search.focus(); }
    else if (event.key.startsWith("Arrow") && room.contains(event.target)) {
      const card = event.target.closest("a.nx-agent");
      const to = card ? next(card, event.key) : all()[0];
      if (to) { event.preventDefault(); to.focus(); }
    }
  });
  if (window.innerWidth > 640) fit();
})();
