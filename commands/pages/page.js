// The page: every table and tree in its section, and the search over all of them.
const parts = [...document.querySelectorAll(".table, .tree")].map((element) => ({
  part: element.matches(".tree") ? new Tree(element) : new Table(element),
  section: element.closest("section"),
}));
const box = document.getElementById("search"), found = document.getElementById("found");

function search() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  const counts = new Map();
  for (const { part, section } of parts) counts.set(section, (counts.get(section) ?? 0) + part.search(words));
  for (const [section, count] of counts) {
    const shown = document.querySelector(`nav a[href="#${section.id}"] .count`);
    if (shown) {
      shown.dataset.all ??= shown.textContent;
      shown.textContent = words.length ? count.toLocaleString("en") : shown.dataset.all;
    }
    section.hidden = words.length > 0 && count === 0;
  }
  const every = [...counts.values()].reduce((so_far, count) => so_far + count, 0);
  found.textContent = words.length ? `${every.toLocaleString("en")} found` : "";
}

let waiting = 0;
box.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(search, 120);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.matches("input")) {
    event.preventDefault();
    box.focus();
  } else if (event.key === "Escape" && event.target === box) {
    box.value = "";
    search();
  }
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("button.find");
  if (button === null) return;
  box.value = button.textContent;
  search();
  box.scrollIntoView({ block: "nearest" });
});
if (parts.length) box.closest(".search").hidden = false;
// On a narrow window the contents would fill the first screen.
if (matchMedia("(max-width: 60rem)").matches) document.querySelector(".contents")?.removeAttribute("open");
