// The console's own script: news in parts of a page, levels of the tree, keys. Without it all pages can be reached too.

const main = document.getElementById("main");
const help = document.getElementById("help");

async function fetched(address) {
  const answer = await fetch(address, { credentials: "same-origin", redirect: "error" });
  if (!answer.ok) throw new Error(`${answer.status}`);
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// News: every element marked data-live is replaced by the same one of a newer page; the chosen row stays chosen.

async function renew() {
  const parts = document.querySelectorAll("[data-live]");
  if (document.hidden || help.open || parts.length === 0 || isInUse()) return;
  const chosen = main.querySelector(".at")?.dataset.row;
  const page = await fetched(location.href);
  for (const part of parts) {
    const newer = page.getElementById(part.id);
    if (newer !== null && newer.innerHTML !== part.innerHTML) part.replaceChildren(...newer.childNodes);
  }
  if (chosen !== undefined && main.querySelector(".at") === null) rows().find((row) => row.dataset.row === chosen)?.classList.add("at");
}

// Whoever types in a part, presses a button of it, or marks text in it, keeps it as it is.
function isInUse() {
  const marked = getSelection();
  const active = document.activeElement;
  return [...document.querySelectorAll("[data-live]")].some((part) =>
    (active !== null && part.contains(active) && active.matches("input, button, textarea, select"))
    || (marked !== null && !marked.isCollapsed && part.contains(marked.anchorNode)));
}

const everyS = Number(document.body.dataset.liveS ?? 0);
if (everyS > 0) {
  const again = () => setTimeout(() => renew().catch(() => {}).finally(again), everyS * 1000);
  again();
}

// The tree: a level is loaded when its node is opened, and anew when the page has news.

async function load(node) {
  const below = node.querySelector(":scope > .below");
  const page = await fetched(node.dataset.level);
  below.replaceChildren(...page.body.childNodes);
  node.dataset.loaded = "yes";
}

function renewLevel(old, fresh) {
  const known = new Map([...old.children].filter((child) => child.dataset.row !== undefined).map((child) => [child.dataset.row, child]));
  const wanted = [...fresh.children].map((child) => {
    const before = known.get(child.dataset.row);
    if (before === undefined || before.tagName !== child.tagName) return child;
    const [line, newer] = before.matches("details") ? [before.firstElementChild, child.firstElementChild] : [before, child];
    if (line.innerHTML !== newer.innerHTML) line.replaceChildren(...newer.childNodes);
    return before;
  });
  if (wanted.length !== old.children.length || wanted.some((child, at) => child !== old.children[at])) old.replaceChildren(...wanted);
}

const tree = document.getElementById("tree");
if (tree !== null) {
  tree.addEventListener("toggle", (event) => {
    const node = event.target;
    if (node.open && node.dataset.loaded === undefined) load(node).catch(() => { node.open = false; });
  }, true);
  tree.addEventListener("click", async (event) => {
    const more = event.target.closest("a[data-more]");
    if (more === null) return;
    event.preventDefault();
    const page = await fetched(more.dataset.more);
    more.replaceWith(...page.body.childNodes);
    main.dataset.extended = "yes";
  });
  const again = () => setTimeout(async () => {
    try {
      if (!document.hidden && !help.open && main.dataset.extended === undefined) {
        const root = new URL(location.href);
        renewLevel(tree, (await fetched(`${document.body.dataset.base}/topics/level${root.search}`)).body);
        for (const node of tree.querySelectorAll("details[open][data-loaded]")) {
          if (node.isConnected) renewLevel(node.querySelector(":scope > .below"), (await fetched(node.dataset.level)).body);
        }
      }
    } catch { /* the next time */ }
    again();
  }, everyS * 1000);
  again();
}

// Copying, where the browser lets a page do it.

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = navigator.clipboard === undefined;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  });
}

// Keys

function rows() {
  return [...main.querySelectorAll("[data-row]")].filter((row) => row.checkVisibility());
}

function move(step) {
  const all = rows();
  if (all.length === 0) return;
  const at = all.findIndex((row) => row.classList.contains("at"));
  const next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? (step > 0 ? 0 : all.length - 1) : at + step))];
  all[at]?.classList.remove("at");
  next.classList.add("at");
  next.scrollIntoView({ block: "nearest" });
}

function open() {
  const row = main.querySelector(".at");
  if (row === null) return;
  if (row.matches("details")) row.open = !row.open;
  else row.querySelector("a[href]")?.click();
}

let isGoing = false;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, textarea, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (help.open) {
    if (event.key === "Escape") help.close();
    return;
  }
  if (isGoing) {
    isGoing = false;
    const there = [...document.querySelectorAll(".menu a")].find((link) => link.dataset.key === event.key);
    if (there !== undefined) { event.preventDefault(); there.click(); }
    return;
  }
  const actions = {
    "/": () => main.querySelector("input[type=search], textarea, input:not([type=hidden])")?.focus(),
    "j": () => move(1),
    "k": () => move(-1),
    "o": open,
    "n": () => main.querySelector("a[rel=next]")?.click(),
    "p": () => main.querySelector("a[rel=prev]")?.click(),
    "u": () => history.back(),
    "g": () => { isGoing = true; },
    "?": () => help.showModal(),
  };
  if (event.key === "Enter" && !event.target.matches("a, button, summary")) { event.preventDefault(); open(); return; }
  const action = actions[event.key];
  if (action === undefined) return;
  event.preventDefault();
  action();
});
const keys = document.getElementById("keys");
keys.hidden = false;
keys.addEventListener("click", () => help.showModal());
