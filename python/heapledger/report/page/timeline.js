// timeline.js: a series of captures over time. Click to select one, or drag to see what grew in between.

const SVG = "http://www.w3.org/2000/svg";
const PAD = { left: 64, right: 16, top: 14, bottom: 22 };

function svgElement(name, attributes, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

class Timeline {
  constructor(app) {
    this.app = app;
    this.box = byId("timeline");
    this.captures = app.data.header.captures;
    this.dragged = null; // the capture at which a drag began
    this.anchor = null; // the end of a range that stays when keys move the other end
    byId("timeline-section").hidden = app.data.header.mode !== "series";
    if (app.data.header.mode !== "series") return;
    this.box.addEventListener("pointerdown", (event) => this.down(event));
    this.box.addEventListener(
      "pointermove",
      (event) => this.dragged !== null && this.choose(this.dragged, this.indexAt(event)),
    );
    this.box.addEventListener("pointerup", () => (this.dragged = null));
    this.box.addEventListener("pointercancel", () => (this.dragged = null));
    this.box.addEventListener("keydown", (event) => this.press(event));
    byId("timeline-clear").addEventListener("click", () => app.update({ from: null }));
    new ResizeObserver(() => this.show()).observe(this.box);
  }

  // The total bytes or blocks of each capture.
  totals() {
    const { data, state } = this.app;
    return this.captures.map((_, capture) => totalOf(data.header, state.moment, capture, state.measure));
  }

  times() {
    const known = this.captures.every((capture) => typeof capture.time === "number");
    return this.captures.map((capture, index) => (known ? capture.time - this.captures[0].time : index));
  }

  x(index) {
    const times = this.times(),
      last = times.at(-1) || 1;
    return PAD.left + (times[index] / last) * (this.box.clientWidth - PAD.left - PAD.right);
  }

  show() {
    if (this.app.data.header.mode !== "series" || !this.app.weights) return;
    const width = this.box.clientWidth,
      height = this.box.clientHeight,
      totals = this.totals(),
      { state } = this.app;
    const rss = state.measure === "bytes" ? this.captures.map((capture) => capture.rss) : [];
    // If most of the resident memory is not Python's, it would flatten the curve.
    const hasRss = rss.length > 0 && rss.every((bytes) => typeof bytes === "number" && bytes < 2 * Math.max(...totals));
    const most = Math.max(...totals, ...(hasRss ? rss : []), 1);
    const y = (value) => height - PAD.bottom - (value / most) * (height - PAD.top - PAD.bottom);
    const points = (values) =>
      values.map((value, index) => `${this.x(index).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
    const svg = svgElement("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    const end = this.x(totals.length - 1);
    svg.append(
      svgElement("polygon", { class: "area", points: `${PAD.left},${y(0)} ${points(totals)} ${end},${y(0)}` }),
    );
    if (state.from !== null)
      svg.append(
        svgElement("rect", {
          class: "chosen",
          x: this.x(state.from),
          y: PAD.top,
          width: this.x(state.to) - this.x(state.from),
          height: height - PAD.top - PAD.bottom,
        }),
      );
    svg.append(svgElement("polyline", { class: "curve", points: points(totals) }));
    if (hasRss) svg.append(svgElement("polyline", { class: "rss", points: points(rss) }));
    for (const index of state.from === null ? [state.to] : [state.from, state.to]) {
      svg.append(
        svgElement("line", {
          class: "edge",
          x1: this.x(index),
          x2: this.x(index),
          y1: PAD.top,
          y2: height - PAD.bottom,
        }),
      );
      svg.append(svgElement("circle", { class: "dot", cx: this.x(index), cy: y(totals[index]), r: 4 }));
    }
    svg.append(
      svgElement("text", { x: PAD.left - 8, y: y(most) + 4, "text-anchor": "end" }, amountText(most, state.measure)),
    );
    svg.append(svgElement("text", { x: PAD.left - 8, y: y(0) + 4, "text-anchor": "end" }, "0"));
    svg.append(svgElement("text", { x: PAD.left, y: height - 6 }, this.timeText(0)));
    svg.append(svgElement("text", { x: end, y: height - 6, "text-anchor": "end" }, this.timeText(totals.length - 1)));
    if (hasRss)
      svg.append(svgElement("text", { x: end - 4, y: y(rss.at(-1)) - 5, "text-anchor": "end" }, "resident memory"));
    this.box.replaceChildren(svg);
    this.describe(totals);
  }

  timeText(index) {
    const { time } = this.captures[index];
    if (typeof time !== "number") return `capture ${index + 1}`;
    if (index === 0) return new Date(time).toLocaleTimeString();
    return `+${((time - this.captures[0].time) / 1000).toFixed(1)} s`;
  }

  describe(totals) {
    const { state } = this.app,
      { measure } = state,
      hint = byId("timeline-hint");
    const text =
      state.from === null
        ? `${this.timeText(state.to)}: ${amountText(totals[state.to], measure)}`
        : `${this.timeText(state.from)} to ${this.timeText(state.to)}: ` +
          changeText(totals[state.to] - totals[state.from], measure);
    hint.textContent = state.from === null ? `${text} · drag across the curve to see what grew in between` : text;
    byId("timeline-clear").hidden = state.from === null;
    this.box.setAttribute("aria-valuemin", 0);
    this.box.setAttribute("aria-valuemax", totals.length - 1);
    this.box.setAttribute("aria-valuenow", state.to);
    this.box.setAttribute("aria-valuetext", text);
  }

  indexAt(event) {
    const x = event.clientX - this.box.getBoundingClientRect().left;
    let nearest = 0;
    for (let i = 1; i < this.captures.length; i++)
      if (Math.abs(this.x(i) - x) < Math.abs(this.x(nearest) - x)) nearest = i;
    return nearest;
  }

  down(event) {
    this.box.setPointerCapture(event.pointerId);
    this.dragged = this.indexAt(event);
    this.choose(this.dragged, this.dragged);
  }

  choose(one, other) {
    const from = one === other ? null : Math.min(one, other),
      to = Math.max(one, other),
      { state } = this.app;
    if (from !== state.from || to !== state.to) this.app.update({ from, to });
  }

  // Arrow keys move the selection. With Shift, one end of a range stays where it was.
  press(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const { state } = this.app;
    if (step === undefined) return;
    event.preventDefault();
    const stays =
      this.anchor === state.from || (this.anchor === state.to && state.from !== null) ? this.anchor : state.to;
    const moves = state.from !== null && stays === state.to ? state.from : state.to;
    const next = Math.min(Math.max(moves + step, 0), this.captures.length - 1);
    this.anchor = event.shiftKey ? stays : next;
    this.choose(this.anchor, next);
  }
}
