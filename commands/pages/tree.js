// A tree: buttons that open and close all nodes, and a search that leaves what it finds and what leads there.
class Tree {
  constructor(element) {
    this.element = element;
    this.nodes = [...element.querySelectorAll("details.node, .leaf")];
    this.texts = this.nodes.map((node) => {
      const own = node.matches(".leaf") ? [node] : node.querySelectorAll(":scope > summary, :scope > .marks");
      return [...own].map((part) => part.textContent).join(" ").toLowerCase();
    });
    this.wasOpen = null;
    const tools = element.querySelector(".tools");
    tools.append(this.button("Open all", true), this.button("Close all", false));
    tools.hidden = false;
  }

  button(text, isOpen) {
    const button = document.createElement("button");
    button.textContent = text;
    button.addEventListener("click", () => {
      for (const node of this.nodes) if (node.open !== undefined) node.open = isOpen || node.parentElement === this.element;
    });
    return button;
  }

  search(words) {
    if (words.length === 0) {
      if (this.wasOpen) this.nodes.forEach((node, at) => {
        node.hidden = false;
        node.classList.remove("hit");
        if (node.open !== undefined) node.open = this.wasOpen[at];
      });
      this.wasOpen = null;
      return this.nodes.length;
    }
    this.wasOpen ??= this.nodes.map((node) => node.open);
    let found = 0;
    const shown = new Set();
    this.nodes.forEach((node, at) => {
      const isHit = words.every((word) => this.texts[at].includes(word));
      node.classList.toggle("hit", isHit);
      if (!isHit) return;
      found++;
      for (let up = node; up !== this.element && !shown.has(up); up = up.parentElement) shown.add(up);
    });
    for (const node of this.nodes) {
      node.hidden = !shown.has(node);
      if (node.open !== undefined) node.open = shown.has(node);
    }
    return found;
  }
}

