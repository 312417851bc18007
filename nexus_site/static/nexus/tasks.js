/* The task board: drag a card, or use its form; the server decides and its sentence is shown.
   Without this script the forms work by themselves. */
(() => {
  const drawing = document.querySelector(".tg-scroll");
  const middle = drawing && drawing.querySelector(".tg-focus");
  if (middle) {
    const room = drawing.getBoundingClientRect();
    const box = middle.getBoundingClientRect();
    drawing.scrollLeft += box.left + box.width / 2 - room.left - room.width / 2;
  }

  const board = document.getElementById("tb-board");
  if (!board || !("acts" in board.dataset)) return;
  const said = document.getElementById("tb-said");
  const dialog = document.getElementById("tb-dialog");
  let held = null;

  const columnOf = (status) =>
    board.querySelector(`.tb-column[data-status="${status}"]`);
  const takes = (column, card) =>
    card.dataset.moves.split(" ").includes(column.dataset.status);

  function say(text, good) {
    said.textContent = text;
    said.className = `tb-said ${good ? "tb-good" : "tb-bad"}`;
    said.hidden = false;
  }

  function offerAgain() {
    const link = document.createElement("a");
    link.href = location.href;
    link.className = "nx-link";
    link.textContent = nexusText("Load it again");
    said.append(" ", link);
  }

  function count(column, by) {
    const shown = column && column.querySelector(".tb-count");
    if (shown && "exact" in shown.dataset)
      shown.textContent = String(Number(shown.textContent) + by);
  }

  function askWhy(owner, status) {
    const field = dialog.querySelector("textarea");
    const deletes = status === "deleted";
    dialog.querySelector("h2").textContent = deletes
      ? nexusText("Why is this task deleted?")
      : nexusText("%(owner)s holds this task. Why do you move it?", { owner });
    dialog.querySelector(".tb-final").hidden = !deletes;
    const button = dialog.querySelector('button[value="move"]');
    button.textContent = deletes ? nexusText("Delete the task") : nexusText("Move the task");
    button.classList.toggle("tb-danger", deletes);
    field.value = "";
    dialog.returnValue = "";
    dialog.showModal();
    return new Promise((resolve) => {
      dialog.addEventListener(
        "close",
        () => resolve(dialog.returnValue === "move" ? field.value.trim() : ""),
        { once: true },
      );
    });
  }

  function renew(card, found) {
    const form = card.querySelector("form");
    card.dataset.version = form.elements.version.value = found.version;
    card.dataset.moves = found.moves.join(" ");
    card.querySelector(".tb-version").textContent = `v${found.version}`;
    const options = found.moves.map((to) => new Option(found.names[to], to));
    form.elements.status.replaceChildren(...options);
    form.elements.reason.value = "";
    const details = card.querySelector("details");
    details.open = false;
    details.hidden = !found.moves.length;
  }

  async function move(card, status, why) {
    const form = card.querySelector("form");
    const owner = card.dataset.owner;
    const asks = status === "deleted" || owner;
    const reason = why || (asks ? await askWhy(owner, status) : "");
    if (asks && !reason) return;
    const body = new URLSearchParams({
      status,
      reason,
      version: card.dataset.version,
      csrfmiddlewaretoken: form.elements.csrfmiddlewaretoken.value,
    });
    const focused = card.contains(document.activeElement);
    const home = card.parentElement;
    const next = card.nextElementSibling;
    const column = columnOf(status);
    if (column) column.querySelector(".tb-cards").prepend(card);
    card.classList.add("tb-busy");
    try {
      const answer = await fetch(form.action, {
        method: "POST",
        body,
        headers: { Accept: "application/json" },
      });
      if (!(answer.headers.get("Content-Type") || "").includes("json"))
        throw new Error(nexusText("Nothing was moved. Load the board again; you may have to sign in."));
      const found = await answer.json();
      if (!answer.ok) throw Object.assign(new Error(found.message), found);
      count(home.closest(".tb-column"), -1);
      count(column, 1);
      renew(card, found);
      say(found.message, true);
      if (!column) card.remove();
    } catch (problem) {
      home.insertBefore(card, next);
      const silent = problem instanceof TypeError;
      say(silent ? nexusText("The server did not answer. Try again.") : problem.message, false);
      if (problem.code === "VERSION_MISMATCH") offerAgain();
    } finally {
      card.classList.remove("tb-busy");
      if (focused && card.isConnected) card.querySelector("a").focus();
    }
  }

  for (const card of board.querySelectorAll(".tb-card")) {
    card.addEventListener("dragstart", (event) => {
      held = card;
      event.dataTransfer.setData("text/plain", "");
      for (const column of board.querySelectorAll(".tb-column"))
        column.classList.toggle("tb-open", takes(column, card));
    });
    card.addEventListener("dragend", () => {
      held = null;
      for (const column of board.querySelectorAll(".tb-column")) column.classList.remove("tb-open");
    });
    card.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      const { status, reason } = event.target.elements;
      move(card, status.value, reason.value.trim());
    });
  }
  for (const column of board.querySelectorAll(".tb-column")) {
    column.addEventListener("dragover", (event) => {
      if (held && takes(column, held)) event.preventDefault();
    });
    column.addEventListener("drop", (event) => {
      event.preventDefault();
      if (held && takes(column, held)) move(held, column.dataset.status, "");
    });
  }
})();
