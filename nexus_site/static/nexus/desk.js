// Every page: times in the reader's own zone, and what the theme leaves to say to screen readers.
(() => {
  "use strict";

  const STEPS = [[60, "second", 1], [3600, "minute", 60], [86400, "hour", 3600], [604800, "day", 86400]];
  // A text in the language of the page; templates/admin/base.html carries what is not English.
  let texts = null;
  function nexusText(text, values) {
    if (!texts) {
      const carried = document.getElementById("nx-texts");
      texts = carried ? JSON.parse(carried.textContent) : {};
    }
    return (texts[text] || text).replace(/%\((\w+)\)s/g, (_, name) => values[name]);
  }
  window.nexusText = nexusText;
  const icons_say = () => ({
    hub: nexusText("Waiting for you"), manage_search: nexusText("Search"), search: nexusText("Search"),
    close: nexusText("Close"), arrow_back: nexusText("Back"), add: nexusText("Add"),
    more_horiz: nexusText("More"), more_vert: nexusText("More"), filter_list: nexusText("Filter"),
  });
  const UTC = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d)(:\d\d)?( UTC)?$/;
  const relative = new Intl.RelativeTimeFormat(document.documentElement.lang || "en", { numeric: "auto" });
  const two = (n) => String(n).padStart(2, "0");

  // The length of time that a number of seconds is, next to the field where it is typed.
  const PARTS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  function length_of(seconds) {
    const said = [];
    let rest = seconds;
    for (const [unit, size] of PARTS) {
      const count = Math.floor(rest / size);
      rest -= count * size;
      if (count) {
        const form = { style: "unit", unit, unitDisplay: "long", useGrouping: false };
        said.push(new Intl.NumberFormat(document.documentElement.lang || "en", form).format(count));
      }
    }
    return said.join(" ") || "–";
  }
  document.addEventListener("input", (event) => {
    const shown = event.target.id && document.querySelector(`[data-of="${event.target.id}"]`);
    if (shown && /^\d{1,9}$/.test(event.target.value)) shown.textContent = length_of(Number(event.target.value));
  });

  const local = (at) =>
    `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;

  function ago(at) {
    const seconds = (at - Date.now()) / 1000;
    for (const [below, unit, size] of STEPS) {
      if (Math.abs(seconds) < below) return relative.format(Math.round(seconds / size), unit);
    }
    return local(at);
  }

  function say(time) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) return;
    if (!time.title) time.title = `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;
    time.textContent = time.dataset.style === "ago" ? ago(at) : local(at);
  }

  // Cells that the theme fills with a time as text become <time> elements too.
  function wrap(cell) {
    const found = UTC.exec(cell.textContent.trim());
    if (!found || cell.children.length > 1) return;
    const time = document.createElement("time");
    time.className = "nx-time";
    time.dateTime = `${found[1]}T${found[2]}${found[3] || ":00"}Z`;
    (cell.firstElementChild || cell).replaceChildren(time);
  }

  // Controls of the theme that have no name of their own take that of their label or heading.
  function name(root) {
    root.querySelectorAll("select, input:not([type=hidden]), textarea").forEach((field) => {
      if (field.labels && field.labels.length) return;
      if (field.getAttribute("aria-label") || field.getAttribute("aria-labelledby") || field.title) return;
      const group = field.closest(".flex-col, .field-line, li, div");
      const words = (group && group.querySelector("h3, h2, label")) || null;
      field.setAttribute("aria-label", (words && words.textContent.trim()) || field.placeholder || field.name || nexusText("value"));
    });
    root.querySelectorAll(".select2-selection").forEach((box) => {
      const select = box.closest(".select2") && box.closest(".select2").previousElementSibling;
      if (select && !box.getAttribute("aria-label")) box.setAttribute("aria-label", select.getAttribute("aria-label") || (select.labels[0] || select).textContent.trim().slice(0, 60) || select.name);
      box.removeAttribute("aria-labelledby");
    });
    root.querySelectorAll(".select2-search__field:not([aria-label])").forEach((field) => field.setAttribute("aria-label", nexusText("Find a choice")));
    root.querySelectorAll("a, button").forEach((control) => {
      if (control.getAttribute("aria-label") || control.title) return;
      const icons = [...control.querySelectorAll(".material-symbols-outlined")];
      const words = icons.reduce((left, icon) => left.replace(icon.textContent, ""), control.textContent);
      if (icons.length && !words.trim()) {
        const icon = icons[0].textContent.trim();
        control.setAttribute("aria-label", icons_say()[icon] || icon.replaceAll("_", " "));
      }
    });
    root.querySelectorAll('[aria-label="scrollable content"]').forEach((box) =>
      box.setAttribute("aria-label", nexusText("Scrollable content")));
    root.querySelectorAll("[data-simplebar], .simplebar-content-wrapper").forEach((box) => {
      if (box.scrollHeight > box.clientHeight && !box.hasAttribute("tabindex")) box.setAttribute("tabindex", "0");
    });
  }

  // The first stop of the keyboard leads past the navigation.
  function skip() {
    const main = document.getElementById("content") || document.getElementById("content-main");
    if (!main || document.querySelector(".nx-skip")) return;
    const outer = document.getElementById("main");
    if (outer && !document.querySelector("main, [role=main]")) outer.setAttribute("role", "main");
    main.tabIndex = -1;
    const link = document.createElement("a");
    link.className = "nx-skip";
    link.href = "#" + main.id;
    link.textContent = nexusText("Skip to the content");
    link.addEventListener("click", () => main.focus());
    document.body.prepend(link);
  }

  function improve(root) {
    root.querySelectorAll("#result_list td, #result_list th, .readonly, .nx-when").forEach(wrap);
    root.querySelectorAll("time.nx-time").forEach(say);
    root.querySelectorAll("#result_list td").forEach((cell) => {
      cell.classList.toggle("nx-empty", ["", "-", "–"].includes(cell.textContent.trim()));
      if (!cell.title && cell.dataset.label) cell.title = cell.dataset.label;
    });
    root.querySelectorAll("a.nx-cell[aria-label]").forEach((cell) => (cell.title = cell.getAttribute("aria-label")));
    name(root);
    root.querySelectorAll(".material-symbols-outlined:not([aria-hidden])").forEach((icon) =>
      icon.setAttribute("aria-hidden", "true"));
  }

  function when_drawn(element, act, options) {
    if (element) new IntersectionObserver((seen, watch) => seen.at(-1).isIntersecting && act(watch), options).observe(element);
  }

  // The theme moves the keyboard into the search 20 ms after it opens: too early where a page is slow to draw.
  function focus_search() {
    const field = document.getElementById("search-input-command");
    when_drawn(field, () => field.focus());
  }

  // Browsers begin at what has `autofocus` only where it is drawn by then, and the theme draws a page late.
  function focus_first() {
    const first = document.querySelector("[autofocus]");
    when_drawn(first, (watch) => {
      watch.disconnect();
      if (document.activeElement === document.body) first.focus();
    }, { rootMargin: "100000px 0px" });
  }

  document.addEventListener("DOMContentLoaded", () => {
    skip();
    focus_search();
    focus_first();
    improve(document);
    document.body.addEventListener("htmx:afterSwap", (event) => improve(event.target));
    window.setInterval(() => document.querySelectorAll('time[data-style="ago"]').forEach(say), 30_000);
  });
  // The theme's choosers are drawn after the page is loaded.
  window.addEventListener("load", () => window.setTimeout(() => {
    improve(document);
    document.documentElement.dataset.nxReady = "";
  }, 150));
  window.nexusImprove = improve;
})();
