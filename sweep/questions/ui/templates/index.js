"use strict";
(() => {
  const root = document.documentElement, { token, server } = document.body.dataset;
  const table = document.querySelector(".sweeps"), body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells].filter((head) => head.dataset.kind);
  const filter = document.getElementById("filter"), shown = document.getElementById("shown");
  const said = document.getElementById("said"), tools = document.querySelector(".tools");
  let version = Number(document.body.dataset.version ?? 0);
  root.classList.add("js");
  // the token is in a cookie now: neither the history nor a bookmark needs it
  if (location.search) history.replaceState(null, "", location.pathname + location.hash);

  // sort: the column and its direction; equal keys by the last run, newest first
  const DATE = 1;
  let column = DATE, isDescending = true;
  const keyOf = (row, at) => {
    const key = row.cells[at].dataset.key;
    return heads[at].dataset.kind === "number" ? Number(key) : key.toLowerCase();
  };
  const compare = (a, b) => typeof a === "number" ? a - b : a.localeCompare(b);

  function arrange() {
    const rows = [...body.rows].sort((a, b) => (isDescending ? -1 : 1) * compare(keyOf(a, column), keyOf(b, column))
      || keyOf(b, DATE) - keyOf(a, DATE));
    // what is in its place already stays: a row that moves loses the focus inside it
    rows.forEach((row, at) => { if (body.rows[at] !== row) body.insertBefore(row, body.rows[at] ?? null); });
    heads.forEach((head, at) => at === column
      ? head.setAttribute("aria-sort", isDescending ? "descending" : "ascending") : head.removeAttribute("aria-sort"));
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let n = 0;
    for (const row of body.rows) {
      const tags = row.dataset.tags.toLowerCase().split(" ");
      const text = `${row.dataset.sweep} ${row.cells[0].textContent} ${row.cells[DATE].textContent} ${row.cells[2].textContent} ${row.dataset.phase} ${tags.join(" ")}`.toLowerCase();
      row.hidden = !words.every((word) => word.startsWith("tag:") ? tags.includes(word.slice(4)) : text.includes(word));
      n += !row.hidden;
    }
    const all = body.rows.length, sweeps = `sweep${all === 1 ? "" : "s"}`;
    const text = words.length ? `${n} of ${all} ${sweeps}` : `${all} ${sweeps}`;
    if (shown.textContent !== text) shown.textContent = text;
    table.hidden = tools.hidden = !all;
    document.getElementById("none").hidden = all > 0;
  }

  // sort and filter stand in the address, so that a reload or a link keeps them
  function remember() {
    const state = new URLSearchParams();
    if (filter.value.trim()) state.set("q", filter.value.trim());
    if (column !== DATE || !isDescending) state.set("sort", (isDescending ? "-" : "") + column);
    history.replaceState(null, "", `#${state}`);
  }

  function recall() {
    const state = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
    const sort = state.get("sort") ?? `-${DATE}`;
    filter.value = state.get("q") ?? "";
    isDescending = sort.startsWith("-");
    column = heads[Math.abs(Number(sort))] ? Math.abs(Number(sort)) : DATE;
    arrange();
  }

  heads.forEach((head, at) => head.querySelector("button").addEventListener("click", () => {
    isDescending = at === column ? !isDescending : head.dataset.kind === "number" && at !== 2;
    column = at;
    arrange();
    remember();
  }));
  filter.addEventListener("input", () => { arrange(); remember(); });
  window.addEventListener("hashchange", () => { if (location.hash.includes("=")) recall(); });
  body.addEventListener("click", ({ target }) => {
    const button = target.closest(".tag");
    if (!button) return;
    filter.value = `tag:${button.dataset.tag}`;
    arrange();
    remember();
    filter.focus();
  });
  recall();
  if (!token) return;

  let fades;
  function say(text) {
    clearTimeout(fades);
    said.textContent = text;
    fades = setTimeout(() => { said.textContent = ""; }, 8000);
  }

  const rowOf = (sweep) => [...body.rows].find((row) => row.dataset.sweep === sweep);
  function parsed(html) {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content.querySelector("tr");
  }

  // cell by cell, so that what has not changed keeps focus and what was typed
  function update(row, now) {
    if (row.dataset.phase === "running" && now.dataset.phase !== "running")
      say(`${row.dataset.sweep}: ${now.cells[2].textContent.trim()}`);
    row.className = now.className;
    for (const name of ["phase", "tags"]) row.dataset[name] = now.dataset[name];
    [...now.cells].forEach((cell, at) => {
      const old = row.cells[at];
      old.dataset.key = cell.dataset.key ?? "";
      if (old.innerHTML === cell.innerHTML) return;
      const bar = old.querySelector("progress"), next = cell.querySelector("progress");
      const had = old.contains(document.activeElement) ? document.activeElement : null;
      const typed = had?.name === "tag" ? had.value : "";
      if (bar && next) {
        old.querySelector("span").replaceWith(cell.querySelector("span"));
        bar.max = next.max;
        bar.value = next.value;
        return;
      }
      old.replaceChildren(...cell.childNodes);
      if (!had) return;
      const label = had.getAttribute("aria-label");
      const same = [...old.querySelectorAll("a, button, input")].find((e) => e.getAttribute("aria-label") === label);
      const again = same ?? old.querySelector("input, a, button");
      if (again?.name === "tag") again.value = typed;
      again?.focus();
    });
  }

  function apply(changes) {
    if (changes.server !== server) { location.reload(); return; }
    for (const [sweep, html] of Object.entries(changes.rows)) {
      const row = rowOf(sweep), now = parsed(html);
      if (row) update(row, now); else body.append(now);
    }
    for (const sweep of changes.removed) {
      const row = rowOf(sweep);
      if (!row) continue;
      if (row.contains(document.activeElement)) (body.rows.length > 1 ? filter : document.getElementById("main")).focus();
      row.remove();
    }
    if (changes.version !== version) arrange();
    version = changes.version;
  }

  let pause = 2000, isAsking = false;
  async function ask() {
    if (isAsking) return;
    isAsking = true;
    try {
      const answer = await fetch(`changes.json?since=${version}`, { cache: "no-store" });
      if (answer.status === 403) { location.reload(); return; } // another server: it says where its address is
      if (!answer.ok) throw new Error(answer.statusText);
      apply(await answer.json());
      if (pause > 2000) say("The server answers again.");
      pause = 2000;
    } catch {
      if (pause === 2000) say("The server does not answer: what is shown may be out of date.");
      pause = Math.min(pause * 2, 30000);
    }
    isAsking = false;
  }
  const follow = async () => {
    if (!document.hidden) await ask();
    setTimeout(follow, pause);
  };
  setTimeout(follow, pause);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });

  async function act(action, request) {
    try {
      const answer = await fetch(action, { method: "POST", body: JSON.stringify(request),
        headers: { "Content-Type": "application/json", "X-Sweep-Token": token } });
      say((await answer.json()).message);
      if (answer.ok) await ask();
      return answer.ok;
    } catch {
      say("The server does not answer: nothing was changed.");
      return false;
    }
  }

  body.addEventListener("submit", async (event) => {
    event.preventDefault();
    const { tag } = event.target.elements, sweep = event.target.closest("tr").dataset.sweep;
    const words = tag.value.split(/[\s,]+/).filter(Boolean);
    if (!words.length) return;
    tag.value = "";
    if (!(await act("tags", { sweep, add: words }))) tag.value = words.join(" ");
  });

  const dialog = document.getElementById("confirm");
  let candidate = "";
  body.addEventListener("click", ({ target }) => {
    const button = target.closest("button"), sweep = target.closest("tr")?.dataset.sweep;
    if (button?.matches(".untag")) act("tags", { sweep, remove: [button.dataset.tag] });
    if (!button?.matches(".remove")) return;
    candidate = sweep;
    dialog.querySelector(".name").textContent = sweep;
    dialog.querySelector(".size").textContent = button.dataset.size;
    dialog.returnValue = "cancel";
    dialog.showModal();
  });
  dialog.addEventListener("close", () => { if (dialog.returnValue === "delete") act("remove", { sweep: candidate }); });
})();
