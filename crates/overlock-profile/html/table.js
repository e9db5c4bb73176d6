// Tables of any number of rows: only those in view are elements.

const ROW = 26;
const PRINTED = 50;

/**
 * Columns are { title, value, text, isNumber, isPlace, from }; text is the value where it is
 * missing. Places are cut at their beginning. A column with from is there only in windows that are
 * so wide: "middle" or "wide".
 */
class RowTable {
  constructor(container, columns, select) {
    Object.assign(this, {
      container,
      columns,
      select,
      rows: [],
      by: -1,
      down: true,
      printing: false,
    });
    this.heads = columns.map((column, at) => {
      const button = element(
        "button",
        { type: "button", click: () => this.sort(at) },
        column.title,
      );
      return element("th", { scope: "col", class: classes(column) }, button);
    });
    this.body = element("tbody");
    container.append(
      element("table", {}, element("thead", {}, element("tr", {}, ...this.heads)), this.body),
    );
    container.addEventListener("scroll", () => this.draw());
  }

  show(rows) {
    this.rows = rows;
    if (this.by >= 0) this.order();
    this.container.scrollTop = 0;
    this.draw();
  }

  sort(at) {
    this.down = this.by === at ? !this.down : Boolean(this.columns[at].isNumber);
    this.by = at;
    this.heads.forEach((head) => head.removeAttribute("aria-sort"));
    this.heads[at].setAttribute("aria-sort", this.down ? "descending" : "ascending");
    this.rows = this.rows.slice();
    this.order();
    this.draw();
  }

  order() {
    const { value } = this.columns[this.by];
    const least = this.down ? 1 : -1;
    this.rows.sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === null || y === null) return (x === null) - (y === null);
      return x < y ? least : x > y ? -least : 0;
    });
  }

  draw() {
    // An empty table has no height yet.
    const height = Math.max(this.container.clientHeight, 480);
    let first = Math.max(0, Math.floor(this.container.scrollTop / ROW) - 5);
    let last = Math.min(this.rows.length, first + Math.ceil(height / ROW) + 12);
    if (this.printing) [first, last] = [0, Math.min(this.rows.length, PRINTED)];
    const left = this.printing ? 0 : this.rows.length - last;
    const shown = this.rows.slice(first, last).map((row) => this.line(row));
    this.body.replaceChildren(this.spacer(first), ...shown, this.spacer(left));
    if (!this.rows.length)
      this.body.append(
        element("tr", {}, element("td", { colspan: this.columns.length }, "Nothing to show.")),
      );
  }

  spacer(rows) {
    const cell = element("td", { colspan: this.columns.length });
    cell.style.height = `${rows * ROW}px`;
    return element("tr", { class: "spacer", "aria-hidden": "true" }, cell);
  }

  line(row) {
    const cells = this.columns.map((column) => {
      const shown = column.text ? column.text(row) : column.value(row);
      const inner = column.isPlace ? element("bdi", {}, shown) : shown;
      const cell = element("td", { class: classes(column) }, inner);
      if (!column.isNumber) cell.title = cell.textContent;
      return cell;
    });
    const choose = () => this.select(row);
    const press = (event) => {
      if (event.key === "Enter") choose();
    };
    return element("tr", { tabindex: 0, click: choose, keydown: press }, ...cells);
  }
}

function classes({ isNumber, isPlace, from = "" }) {
  return `${isNumber ? "number" : "name"}${isPlace ? " place" : ""} ${from}`.trim();
}

function timed(title, value, from) {
  return { from, title, value, text: (row) => time(value(row)), isNumber: true };
}

function counted(title, value, from) {
  return { from, title, value, text: (row) => count(value(row)), isNumber: true };
}
