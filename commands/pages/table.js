// A table: which rows are shown (search), in which order (sort), which are folded, and the rows in the window as elements.
const FEW = 60;          // Up to so many lines are laid out whole; beyond that, only those in the window.
const FOLD_FROM = 3;     // So many equal rows are folded.
const PRINTED = 100;     // Lines of a long table on paper.
const SHORT = 16;        // Characters of a text that is never cut.
const LONG = 60;         // Characters of a text that has room of its own.
const AROUND = 12;       // Lines drawn above and below the window.
const order = new Intl.Collator(undefined, { numeric: true });

class Table {
  constructor(element) {
    this.element = element;
    this.box = element.querySelector(".box");
    this.table = element.querySelector("table");
    this.body = element.querySelector("tbody");
    const data = JSON.parse(element.querySelector('script[type="application/json"]').textContent);
    this.columns = data.columns;
    this.varies = data.varies;
    this.count = data.rows;
    this.kept = null;        // Row numbers that the search found; null: all.
    this.sorted = null;      // Column and direction; null: as given.
    this.unfolded = new Set();
    this.most = this.columns.map((column) =>
      column.kind === "bars" ? column.values.reduce((most, parts) => Math.max(most, sum(parts)), 1) : 0);
    this.addButtons();
    this.box.addEventListener("scroll", () => this.draw(), { passive: true });
    this.body.addEventListener("click", (event) => this.clicked(event));
    this.body.addEventListener("keydown", (event) => this.pressed(event));
    matchMedia("print").addEventListener("change", (media) => this.draw(true, media.matches));
    this.arrange();
  }

  addButtons() {
    [...this.table.querySelectorAll("th")].forEach((head, at) => {
      const button = document.createElement("button");
      button.append(...head.childNodes);
      button.addEventListener("click", () => this.sort(at));
      head.append(button);
    });
  }

  text(row, at) {
    const column = this.columns[at];
    if (column.words) return column.words[column.at[row]];
    const value = column.values[row];
    return value === null ? "" : Array.isArray(value) ? sum(value).toLocaleString("en") : value.toLocaleString("en");
  }

  // Rows in which each word of the query is in some column. Each different text is looked at once.
  search(words) {
    if (words.length === 0) {
      this.kept = null;
    } else {
      const found = words.map((word) => this.columns.map((column) =>
        column.words ? column.words.map((text) => text.toLowerCase().includes(word)) : null));
      this.kept = [];
      for (let row = 0; row < this.count; row++) {
        if (found.every((columns) => columns.some((hits, at) => hits && hits[this.columns[at].at[row]]))) this.kept.push(row);
      }
    }
    this.arrange();
    return this.kept === null ? this.count : this.kept.length;
  }

  // Numbers: greatest first; text: as in a dictionary. A second time: the other way round; a third time: as given.
  sort(at) {
    const first = this.columns[at].words ? 1 : -1;
    const way = this.sorted === null || this.sorted.at !== at ? first : this.sorted.way === first ? -first : 0;
    this.sorted = way ? { at, way } : null;
    this.table.querySelectorAll("th").forEach((head, n) => {
      head.removeAttribute("aria-sort");
      if (way && n === at) head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
    });
    this.arrange();
  }

  inOrder() {
    const rows = this.kept === null ? Array.from({ length: this.count }, (_, row) => row) : this.kept.slice();
    if (this.sorted === null) return rows;
    const { at, way } = this.sorted, column = this.columns[at];
    let rank;
    if (column.words) {
      // Each different text is compared, not each row.
      const places = column.words.map((_, word) => word).sort((a, b) => order.compare(column.words[a], column.words[b]));
      const place = new Array(places.length);
      places.forEach((word, n) => { place[word] = n; });
      rank = (row) => place[column.at[row]];
    } else {
      rank = (row) => { const value = column.values[row]; return value === null ? -1 : Array.isArray(value) ? sum(value) : value; };
    }
    return rows.sort((a, b) => way * (rank(a) - rank(b)) || a - b);
  }

  // The lines: a row, or the first of equal rows with the number of those folded below it.
  arrange() {
    const rows = this.inOrder();
    if (this.varies.length === 0) {
      this.lines = rows.map((row) => ({ row, more: 0 }));
    } else {
      const groups = new Map();
      const same = this.columns.map((_, at) => at).filter((at) => !this.varies.includes(at));
      for (const row of rows) {
        const key = same.map((at) => this.columns[at].words ? this.columns[at].at[row] : this.text(row, at)).join();
        const group = groups.get(key);
        if (group) group.push(row); else groups.set(key, [row]);
      }
      this.lines = [];
      for (const [key, group] of groups) {
        if (group.length < FOLD_FROM) {
          for (const row of group) this.lines.push({ row, more: 0 });
        } else {
          const isOpen = this.unfolded.has(key);
          this.lines.push({ row: group[0], more: group.length - 1, key, isOpen });
          if (isOpen) for (const row of group.slice(1)) this.lines.push({ row, more: 0, isInner: true });
        }
      }
    }
    this.draw(true);
  }

  draw(isNew = false, isPrinted = matchMedia("print").matches) {
    const windowed = this.lines.length > FEW && !isPrinted;
    if (!windowed && !isNew) return;
    if (this.element.classList.toggle("window", windowed) && isNew) this.setWidths();
    if (!windowed) {
      this.table.querySelector("colgroup")?.remove();
      this.table.style.minWidth = "";
      this.show(0, isPrinted ? Math.min(this.lines.length, PRINTED) : this.lines.length);
      return;
    }
    const tall = this.tall ??= 1.9 * parseFloat(getComputedStyle(document.documentElement).fontSize);
    const first = Math.max(0, Math.floor(this.box.scrollTop / tall) - AROUND);
    const shown = Math.ceil(Math.max(this.box.clientHeight, innerHeight * 0.7) / tall) + 2 * AROUND;
    const end = Math.min(this.lines.length, first + shown);
    if (!isNew && first === this.first && end === this.end) return;
    const focused = this.body.contains(document.activeElement) ? document.activeElement.closest("tr").dataset.line : null;
    this.show(Math.min(first, end), end, tall);
    if (focused !== null) this.body.querySelector(`tr[data-line="${focused}"]`)?.focus({ preventScroll: true });
  }

  show(first, end, tall = 0) {
    this.first = first;
    this.end = end;
    const rows = [];
    if (tall && first) rows.push(this.gap(first * tall));
    for (let at = first; at < end; at++) rows.push(this.line(this.lines[at], at, tall > 0));
    if (tall && end < this.lines.length) rows.push(this.gap((this.lines.length - end) * tall));
    if (this.lines.length === 0) rows.push(this.note("No row matches."));
    if (!tall && end < this.lines.length) rows.push(this.note(`and ${(this.lines.length - end).toLocaleString("en")} more rows`));
    this.body.replaceChildren(...rows);
  }

  line(line, at, isWindowed) {
    const element = document.createElement("tr");
    element.dataset.line = at;
    if (line.isInner) element.className = "inner";
    if (isWindowed) {
      element.tabIndex = 0;
      if (this.chosen === line.row) element.classList.add("chosen");
    }
    this.columns.forEach((column, n) => {
      const cell = document.createElement("td");
      cell.className = column.kind;
      cell.dataset.head = column.head;
      if (column.kind === "bars") this.fillBars(cell, column, line.row, n); else cell.textContent = this.text(line.row, n);
      if (cell.textContent.length > LONG) cell.classList.add("long");
      if (column.kind === "severity") cell.classList.add(cell.textContent.split(":")[0].split(" ")[0] || "none");
      if (isWindowed && column.kind !== "bars") cell.title = cell.textContent;
      if (line.more && n === this.varies[0]) cell.append(this.unfoldButton(line));
      element.append(cell);
    });
    return element;
  }

  unfoldButton(line) {
    const button = document.createElement("button");
    button.className = "like";
    button.setAttribute("aria-expanded", line.isOpen);
    button.textContent = line.isOpen ? "fold" : `and ${line.more.toLocaleString("en")} more like this`;
    return button;
  }

  fillBars(cell, column, row, at) {
    const number = document.createElement("span"), track = document.createElement("span");
    number.className = "sum";
    number.textContent = this.text(row, at);
    track.className = "track";
    column.values[row].forEach((value, n) => {
      if (value === 0) return;
      const bar = document.createElement("i");
      bar.className = column.series[n][1];
      bar.style.width = `${(100 * value) / this.most[at]}%`;
      bar.title = `${value.toLocaleString("en")} ${column.series[n][0]}`;
      track.append(bar);
    });
    cell.append(number, track);
  }

  gap(height) {
    const cell = document.createElement("td"), row = document.createElement("tr");
    row.className = "gap";
    row.ariaHidden = "true";
    cell.colSpan = this.columns.length;
    cell.style.height = `${height}px`;
    row.append(cell);
    return row;
  }

  note(text) {
    const cell = document.createElement("td"), row = document.createElement("tr");
    row.className = "empty";
    cell.colSpan = this.columns.length;
    cell.textContent = text;
    row.append(cell);
    return row;
  }

  // In a window all lines have one height. Columns of short texts are as wide as the longest of the first ones; the
  // others share the rest.
  setWidths() {
    this.table.querySelector("colgroup")?.remove();
    const group = document.createElement("colgroup");
    let least = 0;
    this.columns.forEach((column, at) => {
      let longest = Math.max(...column.head.split(" ").map((word) => word.length));
      for (const { row } of this.lines.slice(0, 200)) longest = Math.max(longest, this.text(row, at).length);
      const isShort = longest <= SHORT && at !== this.varies[0];
      const width = column.kind === "bars" ? 20 : isShort ? longest + 3 : 24;
      const element = document.createElement("col");
      if (column.kind === "bars" || isShort) element.style.width = `${width}ch`;
      group.append(element);
      least += width;
    });
    this.table.prepend(group);
    this.table.style.minWidth = `${least}ch`;
  }

  clicked(event) {
    const row = event.target.closest("tr[data-line]");
    if (row === null) return;
    const line = this.lines[row.dataset.line];
    if (event.target.closest("button.like")) {
      if (!this.unfolded.delete(line.key)) this.unfolded.add(line.key);
      this.arrange();
      this.body.querySelector(`tr[data-line="${row.dataset.line}"] button.like`)?.focus({ preventScroll: true });
    } else if (row.tabIndex === 0 && getSelection().isCollapsed) {
      this.choose(line.row);
    }
  }

  pressed(event) {
    const row = event.target.closest("tr[tabindex]");
    if (row === null || event.target !== row) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter") this.choose(this.lines[row.dataset.line].row);
    if (step === undefined) return;
    event.preventDefault();
    this.body.querySelector(`tr[data-line="${Number(row.dataset.line) + step}"]`)?.focus();
  }

  // The whole of a row whose texts are cut in the window; a second time: away with it.
  choose(row) {
    this.element.querySelector(".whole")?.remove();
    this.chosen = this.chosen === row ? undefined : row;
    if (this.chosen !== undefined) {
      const list = document.createElement("dl");
      list.className = "whole";
      this.columns.forEach((column, at) => {
        const term = document.createElement("dt"), text = document.createElement("dd");
        term.textContent = column.head;
        text.textContent = this.text(row, at);
        list.append(term, text);
      });
      this.box.after(list);
    }
    this.draw(true);
  }
}

function sum(numbers) {
  return numbers.reduce((so_far, number) => so_far + number, 0);
}

