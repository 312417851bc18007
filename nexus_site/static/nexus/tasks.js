/* The task board: drag, or press a card's button; the server decides and its sentence is shown. */
(() => {
  const board = document.getElementById("tb-board");
  const token = board && board.querySelector("[name=csrfmiddlewaretoken]");
  if (!token) return;
  const said = document.getElementById("tb-said");
  let held = null;

  const accepts = (place, card) =>
    place.split(" ").includes(card.dataset.status);

  function say(text, good) {
    said.textContent = text;
    said.className = `tb-said ${good ? "tb-good" : "tb-bad"}`;
    said.hidden = false;
  }

  function offer(card) {
    for (const button of card.querySelectorAll("[data-to]"))
      button.hidden = !accepts(button.dataset.from, card);
  }

  function count(column, by) {
    const shown = column.querySelector(".tb-count");
    shown.textContent = String(Number(shown.textContent) + by);
  }

  async function move(card, column) {
    const status = column.dataset.status;
    const body = new URLSearchParams({ status, version: card.dataset.version });
    if (status === "deleted") {
      const reason = window.prompt("Why is this task deleted?");
      if (!reason) return;
      body.set("reason", reason);
    }
    const home = card.parentElement;
    const next = card.nextElementSibling;
    column.querySelector(".tb-cards").prepend(card);
    card.classList.add("tb-busy");
    try {
      const answer = await fetch(card.dataset.move, {
        method: "POST",
        body,
        headers: { "X-CSRFToken": token.value, Accept: "application/json" },
      });
      const found = await answer.json();
      if (!answer.ok) throw new Error(found.message);
      count(home.closest(".tb-column"), -1);
      count(column, 1);
      card.dataset.status = found.status;
      card.dataset.version = found.version;
      card.querySelector(".tb-version").textContent = `v${found.version}`;
      offer(card);
      say(found.message, true);
    } catch (problem) {
      home.insertBefore(card, next);
      say(problem.message || "The server did not answer.", false);
    } finally {
      card.classList.remove("tb-busy");
    }
  }

  for (const card of board.querySelectorAll(".tb-card")) {
    offer(card);
    card.addEventListener("dragstart", (event) => {
      held = card;
      event.dataTransfer.setData("text/plain", "");
      for (const column of board.querySelectorAll(".tb-column"))
        column.classList.toggle("tb-open", accepts(column.dataset.accepts, card));
    });
    card.addEventListener("dragend", () => {
      held = null;
      for (const column of board.querySelectorAll(".tb-column")) column.classList.remove("tb-open");
    });
    card.addEventListener("click", (event) => {
      const to = event.target.dataset.to;
      if (to) move(card, board.querySelector(`.tb-column[data-status="${to}"]`));
    });
  }
  for (const column of board.querySelectorAll(".tb-column")) {
    column.addEventListener("dragover", (event) => {
      if (held && accepts(column.dataset.accepts, held)) event.preventDefault();
    });
    column.addEventListener("drop", (event) => {
      event.preventDefault();
      if (held && accepts(column.dataset.accepts, held)) move(held, column);
    });
  }
})();
