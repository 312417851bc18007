// What happens, as it happens: one stream for a page, none while the page is hidden or paused.
// Parts of a page with `data-live` are loaded anew after events; the list of the feed grows.
(() => {
  "use strict";
  const MOST = 200, QUIET = 2500;
  let source = null, paused = false, renewing = 0;

  const feed = () => document.querySelector("[data-live-feed]");
  const parts = () => [...document.querySelectorAll("[data-live][id]")];
  const state = (words) => { const at = document.getElementById("feed-state"); if (at) at.textContent = words; };

  function sentences() {
    const at = document.getElementById("nx-sentences");
    return at ? JSON.parse(at.textContent) : {};
  }

  function part(tag, look, words) {
    const made = document.createElement(tag);
    made.className = look;
    made.textContent = words;
    return made;
  }

  // What an action or a code says in words, with the code in small print, as the server writes it.
  function named(tag, look, code) {
    const words = sentences()[code];
    const made = part(tag, look, words || code);
    if (words) made.append(" ", part("code", "nx-code", code));
    return made;
  }

  // As the server's `actor_name` says it.
  function actorName(actor) {
    const [, kind, name] = actor.match(/^(agent|human|system):(.+)$/s) || [];
    if (kind === "system") return nexusText("System (%(part)s)", { part: name });
    return kind === "human" ? nexusText("%(name)s (person)", { name }) : name || actor;
  }

  function line(event) {
    const item = document.createElement("li");
    item.className = `nx-feed-${event.decision} nx-new`;
    const link = document.createElement("a");
    link.href = `/admin/ledger/event/${event.seq}/change/`;
    link.append(
      named("b", "", event.action), " ",
      part("span", "", actorName(event.actor)), " ",
      ...(event.code ? [named("span", "nx-tag nx-deny", event.code), " "] : []),
      part("span", "nx-mono", `${event.tool} ${event.subject}`.trim().slice(0, 90)),
    );
    const time = document.createElement("time");
    time.className = "nx-time";
    time.dateTime = event.at;
    time.dataset.style = "ago";
    item.append(link, time);
    return item;
  }

  async function renew() {
    renewing = 0;
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (!answer.ok || answer.redirected) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of parts()) {
      const next = fresh.getElementById(part.id);
      if (next && !part.contains(document.activeElement)) part.replaceWith(document.adoptNode(next));
    }
    window.nexusImprove(document);
  }

  function take(message) {
    const list = feed();
    if (list) {
      const empty = document.getElementById("feed-empty");
      if (empty) empty.remove();
      list.prepend(line(JSON.parse(message.data)));
      while (list.children.length > MOST) list.lastElementChild.remove();
      window.nexusImprove(list);
    }
    if (parts().length && !renewing) renewing = window.setTimeout(renew, QUIET);
  }

  function stop(words) {
    if (source) source.close();
    source = null;
    state(words);
  }

  function start() {
    if (source || paused || document.hidden || !(feed() || parts().length)) return;
    source = new EventSource(`/admin/live${feed() ? location.search : ""}`);
    source.onopen = () => state(nexusText("live"));
    source.onmessage = take;
    source.onerror = () => { if (source && source.readyState === EventSource.CLOSED) stop(nexusText("not live: reload the page to see what is new")); else state(nexusText("connecting")); };
  }

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("feed-pause");
    if (button) button.addEventListener("click", () => {
      paused = !paused;
      button.setAttribute("aria-pressed", String(paused));
      button.textContent = paused ? nexusText("Go on") : nexusText("Pause");
      if (paused) stop(nexusText("paused")); else start();
    });
    document.addEventListener("visibilitychange", () => (document.hidden ? stop(nexusText("paused")) : start()));
    window.addEventListener("pagehide", () => stop(nexusText("closed")));
    start();
  });
})();
