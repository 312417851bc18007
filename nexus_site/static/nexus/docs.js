// The API's description: search, and calls that a person tries with an agent's key. The key lives in
// one variable of this script: it is stored nowhere and is in no address. Calls go to this site only.
(() => {
  "use strict";
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const one = (selector, root = document) => root.querySelector(selector);
  const word = (name) => document.getElementById("words").dataset[name];
  let key = "", held = new Set(), listening = null, here = location.pathname;

  function make(tag, className, ...inside) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    made.append(...inside);
    return made;
  }

  // JSON with its parts coloured; text only, never markup.
  function coloured(text) {
    const parts = /("(?:\\.|[^"\\])*")(\s*:)?|\b(?:true|false|null)\b|-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b/g;
    const into = document.createDocumentFragment();
    let end = 0;
    for (const found of text.matchAll(parts)) {
      into.append(text.slice(end, found.index));
      if (found[1]) into.append(make("span", found[2] ? "k" : "s", found[1]), found[2] || "");
      else into.append(make("span", "n", found[0]));
      end = found.index + found[0].length;
    }
    into.append(text.slice(end));
    return into;
  }

  function pretty(text) {
    try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
  }

  const block = (text) => make("pre", "", make("code", "json", coloured(text)));

  // --- the key ---
  async function useKey() {
    key = one("#key").value.trim();
    held = new Set();
    const state = one("#key-state");
    if (!key) { state.textContent = word("noKey"); markHeld(); return; }
    try {
      const answer = await call("GET", "/api/v1/me", {});
      const body = JSON.parse(answer.text);
      if (answer.status === 200) {
        state.textContent = `${word("is")} ${body.agent}, ${body.organisation} (${body.session.mode})`;
        const tools = await call("GET", "/api/v1/tools", {});
        if (tools.status === 200) held = new Set(JSON.parse(tools.text).tools.map((tool) => tool.name));
      } else {
        key = "";
        state.textContent = `${word("unknown")} ${body.message}`;
      }
    } catch (problem) { key = ""; state.textContent = `${word("failed")} ${problem.message}`; }
    markHeld();
  }

  function markHeld() {
    for (const link of all("nav a[data-name]")) {
      const mine = held.has(link.dataset.name);
      link.classList.toggle("yours", mine);
      if (mine) link.title = word("yours"); else link.removeAttribute("title");
    }
  }

  async function call(method, path, headers, body) {
    const begun = performance.now();
    const answer = await fetch(path, {
      method, body, credentials: "omit", cache: "no-store", redirect: "error",
      headers: { Authorization: `Bearer ${key}`, ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers },
    });
    const text = await answer.text();
    return { status: answer.status, words: answer.statusText, text, time: performance.now() - begun, headers: answer.headers };
  }

  // --- trying a call ---
  function openTry(trier) {
    const about = trier.dataset, article = trier.closest("article");
    const form = one("#try").content.firstElementChild.cloneNode(true);
    const shown = { post: about.method === "POST", body: Boolean(about.request), tool: Boolean(about.tool), stream: Boolean(about.stream) };
    for (const part of all("[data-for]", form)) if (!shown[part.dataset.for]) part.remove();
    if (shown.stream) one(".send", form).remove();
    for (const row of all("li[data-place]", article)) one(".inputs", form).append(input(row.dataset));
    const body = one("textarea", form);
    if (body) body.value = about.request;
    const context = { about, form, body };
    listen(".send", () => send(context));
    listen(".explain", () => send(context, true));
    listen(".whole", () => { body.value = about.whole; body.focus(); });
    listen(".listen", (button) => (listening ? listening.stop() : stream(context, button)));
    trier.replaceChildren(form);
    (body || one("button", form)).focus();

    function listen(selector, act) {
      const button = one(selector, form);
      if (button) button.addEventListener("click", () => act(button));
    }
  }

  function input(about) {
    const values = about.values ? about.values.split(" ") : [];
    const field = make(values.length ? "select" : "input");
    for (const value of values.length ? ["", ...values] : []) field.append(make("option", "", value));
    Object.assign(field.dataset, { place: about.place, name: about.name });
    field.autocomplete = "off";
    return make("label", "", make("span", "", about.name), field);
  }

  function asked({ about, form }) {
    let path = about.path;
    const headers = {}, query = new URLSearchParams();
    for (const field of all(".inputs [data-place]", form)) {
      const { place, name } = field.dataset, value = field.value.trim();
      if (place === "path") path = path.replace(`{${name}}`, encodeURIComponent(value));
      else if (value && place === "query") query.set(name, value);
      else if (value) headers[name] = value;
    }
    return { path: query.size ? `${path}?${query}` : path, headers };
  }

  async function send(context, isQuestion = false) {
    const { about, form, body } = context;
    const result = one(".result", form);
    if (!key) { result.replaceChildren(make("p", "no", word("noKey"))); one("#key").focus(); return; }
    let { path, headers } = asked(context), sent = body ? body.value.trim() || "{}" : undefined;
    if (isQuestion) {
      try { sent = JSON.stringify({ tool: about.tool, params: JSON.parse(sent) }); } catch (problem) {
        result.replaceChildren(make("p", "no", `${word("badJson")} ${problem.message}`));
        return;
      }
      path = "/api/v1/explain";
      headers = headers["X-Nexus-Session"] ? { "X-Nexus-Session": headers["X-Nexus-Session"] } : {};
    }
    const buttons = all(".buttons button", form);
    for (const button of buttons) button.disabled = true;
    result.replaceChildren(make("p", "", word("sending")));
    try { show(result, await call(about.method, path, headers, sent)); } catch (problem) {
      result.replaceChildren(make("p", "no", `${word("failed")} ${problem.message}`));
    }
    for (const button of buttons) button.disabled = false;
  }

  function show(result, answer) {
    const good = answer.status < 400;
    const head = make("p", "head", make("b", good ? "ok" : "no", `${answer.status} ${answer.words}`.trim()), make("span", "", `${Math.round(answer.time)} ms`));
    for (const name of ["X-Request-ID", "Retry-After", "Allow"]) {
      const value = answer.headers.get(name);
      if (value) head.append(make("span", "", `${name}: ${value}`));
    }
    result.replaceChildren(head);
    if (!good) result.append(...refused(answer.text));
    result.append(block(pretty(answer.text)));
  }

  function refused(text) {
    let body;
    try { body = JSON.parse(text); } catch { return []; }
    if (!body.error_code) return [];
    const link = make("a", "", body.error_code);
    link.href = `/api/docs/errors/#${encodeURIComponent(body.error_code)}`;
    return [make("div", "step", make("p", "", link, `: ${body.message}`), make("p", "", make("b", "", `${word("next")}: `), body.next_action))];
  }

  // --- listening to events ---
  async function stream(context, button) {
    const result = one(".result", context.form), list = make("ol"), state = make("p", "head", word("listening"));
    if (!key) { result.replaceChildren(make("p", "no", word("noKey"))); one("#key").focus(); return; }
    const control = new AbortController();
    listening = { stop: () => control.abort() };
    button.textContent = word("stop");
    result.replaceChildren(state, list);
    try {
      const { path, headers } = asked(context);
      const answer = await fetch(path, { headers: { Authorization: `Bearer ${key}`, ...headers }, credentials: "omit", cache: "no-store", signal: control.signal });
      if (!answer.ok) show(result, { status: answer.status, words: answer.statusText, text: await answer.text(), time: 0, headers: answer.headers });
      else { await read(answer.body.getReader(), (event) => list.prepend(line(event))); state.textContent = word("ended"); }
    } catch (problem) { state.textContent = control.signal.aborted ? word("stopped") : `${word("failed")} ${problem.message}`; }
    listening = null;
    button.textContent = word("listen");
  }

  async function read(reader, take) {
    const decoder = new TextDecoder();
    for (let text = ""; ;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const events = text.split("\n\n");
      text = events.pop();
      for (const event of events) if (/^data:/m.test(event)) take(event);
    }
  }

  function line(event) {
    const field = (name) => (event.match(new RegExp(`^${name}: ?(.*)$`, "m")) || ["", ""])[1];
    return make("li", "", make("p", "head", make("b", "ok", field("event")), make("span", "", new Date().toLocaleTimeString())), block(pretty(field("data"))));
  }

  // --- search and navigation ---
  function search() {
    const asks = one("#search").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const nav = one("nav"), links = all("nav li li a");
    nav.classList.toggle("searching", asks.length > 0);
    let number = 0;
    for (const link of links) {
      const text = `${link.textContent} ${link.dataset.words || ""}`.toLowerCase();
      link.parentElement.hidden = !asks.every((part) => text.includes(part));
      number += !link.parentElement.hidden;
    }
    for (const group of all("nav > ul > li")) group.hidden = asks.length > 0 && !all("li", group).some((item) => !item.hidden);
    one("#found").textContent = asks.length ? (number ? `${number} ${word("found")}` : word("none")) : "";
  }

  // With a key the pages are exchanged inside this document, so that the key need not be typed again.
  async function go(address, isNew) {
    const answer = await fetch(address, { credentials: "omit" });
    if (!answer.ok) { location.assign(address); return; }
    if (listening) listening.stop();
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (isNew) history.pushState(null, "", address);
    here = location.pathname;
    document.title = fresh.title;
    for (const selector of ["main", "nav > ul"]) one(selector).replaceWith(document.adoptNode(one(selector, fresh)));
    one("nav").classList.remove("shown");
    one("#menu").setAttribute("aria-expanded", "false");
    begin(one("main"));
    markHeld();
    search();
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target) target.scrollIntoView(); else scrollTo(0, 0);
    one("main").focus({ preventScroll: true });
  }

  function begin(root) {
    for (const code of all("code.json", root)) code.replaceChildren(coloured(code.textContent));
    for (const button of all(".open-try", root)) {
      button.hidden = false;
      button.addEventListener("click", () => openTry(button.parentElement));
    }
    if (!navigator.clipboard) return;
    for (const caption of all("figcaption", root)) {
      const button = make("button", "", word("copy"));
      button.type = "button";
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(one("code", caption.parentElement).textContent);
        button.textContent = word("copied");
        setTimeout(() => { button.textContent = word("copy"); }, 1500);
      });
      caption.append(button);
    }
  }

  document.documentElement.classList.add("script");
  one("#keybox").hidden = one(".search").hidden = one("#menu").hidden = false;
  begin(document);
  one("#use-key").addEventListener("click", useKey);
  one("#key").addEventListener("keydown", (event) => { if (event.key === "Enter") useKey(); });
  one("#search").addEventListener("input", search);
  one("#search").addEventListener("keydown", (event) => {
    const first = all("nav li li a").find((link) => link.checkVisibility());
    if (event.key === "Enter" && first) first.click();
    if (event.key === "Escape") { one("#search").value = ""; search(); }
  });
  one("#menu").addEventListener("click", () => {
    const shown = one("nav").classList.toggle("shown");
    one("#menu").setAttribute("aria-expanded", String(shown));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.matches("input, textarea, select")) return;
    event.preventDefault();
    one("nav").classList.add("shown");
    one("#search").focus();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (!key || !link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const to = new URL(link.href);
    if (to.origin !== location.origin || !to.pathname.startsWith("/api/docs/") || to.pathname === location.pathname) return;
    event.preventDefault();
    go(to.href, true);
  });
  addEventListener("popstate", () => { if (location.pathname !== here) go(location.href, false); });
  // Addresses of the one page that there was: /api/docs/#send_mail
  const named = location.pathname === "/api/docs/" && location.hash && all("nav a[data-name]").find((link) => link.dataset.name === location.hash.slice(1));
  if (named) location.replace(named.href);
})();
