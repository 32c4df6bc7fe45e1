// graph.js: the flame graph. It draws boxes from the zoomed frame down, on a canvas as large as its visible part.
//
// Only frames of at least one pixel get a box. The smaller frames beside them share one box. So the cost of drawing
// depends on the size of the screen and not on the size of the tree.

const ROW = 21,
  LEAST_ROWS = 8, // of the graph, even if the screen is too small for them
  BELOW = 150, // pixels for the legend and the beginning of the table
  LEAST_WIDTH = 1,
  LEAST_LABEL = 34,
  MARGIN = 6;
const LEAST_DETAIL = 70;
const CODE_FONT = '11px ui-monospace, "DejaVu Sans Mono", monospace';
const LABEL_FONT = '12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';

class Graph {
  constructor(app) {
    this.app = app;
    this.box = byId("graph");
    this.space = byId("graph-space");
    this.canvas = byId("canvas");
    this.context = this.canvas.getContext("2d");
    this.rows = [];
    this.focused = null;
    this.hovered = null;
    this.pending = false;
    this.box.addEventListener("scroll", () => this.draw());
    this.canvas.addEventListener("mousemove", (event) => this.hover(event));
    this.canvas.addEventListener("mouseleave", () => this.leave());
    this.canvas.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.app.weights && this.show()).observe(this.box);
    this.whole = false; // whether all rows are visible, however many
    byId("taller").addEventListener("click", () => {
      this.whole = !this.whole;
      this.show();
    });
  }

  // Lay out and draw what the app shows now.
  show() {
    const { frames, zoomed } = this.app;
    this.width = this.box.clientWidth;
    this.colours = new Colours();
    this.layOut(frames, zoomed);
    const height = this.rows.length * ROW + 1;
    this.space.style.height = `${height}px`;
    this.fit(height);
    const shown = Math.max(Math.min(height, this.box.clientHeight), 1),
      ratio = window.devicePixelRatio || 1;
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${shown}px`;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(shown * ratio);
    if (this.focused === null || !this.isShown(this.focused)) this.focused = zoomed;
    this.draw();
  }

  // The box is as high as its content, but the beginning of the table must stay on the screen.
  fit(height) {
    const top = this.box.getBoundingClientRect().top + window.scrollY;
    const most = Math.max(window.innerHeight - top - BELOW, LEAST_ROWS * ROW);
    this.box.style.maxHeight = this.whole ? "none" : `${most}px`;
    byId("taller").hidden = height <= most;
    byId("taller").textContent = this.whole ? "Fewer rows" : `All ${this.rows.length} rows`;
  }

  layOut(frames, zoomed) {
    this.rows = [];
    if (zoomed.weight === 0) return;
    const waiting = [{ frame: zoomed, x: 0, width: this.width }];
    while (waiting.length > 0) {
      const box = waiting.pop();
      const row = box.frame.depth - zoomed.depth;
      (this.rows[row] ??= []).push(box);
      if (box.frame === frames.imports && box.frame !== zoomed) continue; // it is folded
      const children = frames.childrenOf(box.frame),
        scale = box.width / box.frame.weight;
      let x = box.x,
        rest = 0,
        count = 0;
      for (const frame of children) {
        const width = frame.weight * scale;
        if (width < LEAST_WIDTH) {
          rest += frame.weight;
          count++;
          continue;
        }
        waiting.push({ frame, x, width });
        x += width;
      }
      if (rest * scale >= LEAST_WIDTH)
        (this.rows[row + 1] ??= []).push({
          frame: null,
          caller: box.frame,
          count,
          weight: rest,
          x,
          width: rest * scale,
        });
    }
    for (const row of this.rows) row.sort((a, b) => a.x - b.x);
  }

  isShown(frame) {
    return this.rows.some((row) => row.some((box) => box.frame === frame));
  }

  boxOf(frame) {
    const row = this.rows[frame.depth - this.app.zoomed.depth] ?? [];
    return row.find((box) => box.frame === frame);
  }

  draw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.drawNow();
    });
  }

  drawNow() {
    const { context, box } = this,
      ratio = window.devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = this.colours.card;
    context.fillRect(0, 0, this.width, this.canvas.height / ratio);
    context.translate(0, -box.scrollTop);
    context.font = LABEL_FONT;
    context.textBaseline = "middle";
    const first = Math.floor(box.scrollTop / ROW),
      last = Math.ceil((box.scrollTop + box.clientHeight) / ROW);
    for (let row = first; row < Math.min(last, this.rows.length); row++)
      for (const shown of this.rows[row]) this.drawBox(shown, row * ROW);
    for (const [frame, colour, thick] of [
      [this.hovered, this.colours.ink, 1],
      [this.focused, this.colours.focus, 2],
    ])
      this.outline(frame, colour, thick);
    // Marks for measurements: when the page was first drawn, and when it was last drawn.
    if (performance.getEntriesByName("heapledger-ready").length === 0) performance.mark("heapledger-ready");
    performance.clearMarks("heapledger-drawn");
    performance.mark("heapledger-drawn");
  }

  drawBox(box, y) {
    const { context, colours, app } = this;
    const gap = box.width > 3 ? 1 : 0;
    if (box.frame === null) {
      context.fillStyle = colours.faint;
      context.fillRect(box.x, y, box.width - gap, ROW - 1);
      if (box.width > 70) this.drawText(`${countText(box.count)} smaller`, box, y, colours.soft);
      return;
    }
    const matched = app.found === null || app.found[box.frame.location] === 1;
    context.globalAlpha = matched ? 1 : 0.35;
    context.fillStyle = this.colourOf(box.frame);
    context.fillRect(box.x, y, box.width - gap, ROW - 1);
    if (app.names.kind(box.frame.location) === "cut") this.hatch(box.x, y, box.width - gap);
    context.globalAlpha = 1;
    if (app.found !== null && matched) {
      context.fillStyle = colours.match;
      context.fillRect(box.x, y + ROW - 4, Math.max(box.width - gap, 1), 3);
    }
    if (box.width >= LEAST_LABEL) this.drawLabel(box, y, matched);
  }

  colourOf(frame) {
    const { app, colours } = this;
    if (app.weights.difference) return colours.ofChange(frame.before, frame.after);
    if (frame.location === 0) return colours.root;
    return colours.ofKind(app.names.kind(frame.location), app.names.shade(frame.location));
  }

  // A joint is not a frame. That the code above it called the code below it is a guess.
  hatch(x, y, width) {
    const { context } = this;
    context.save();
    context.beginPath();
    context.rect(x, y, width, ROW - 1);
    context.clip();
    context.strokeStyle = this.colours.soft;
    context.lineWidth = 1;
    context.beginPath();
    for (let at = x - ROW; at < x + width; at += 6) {
      context.moveTo(at, y + ROW);
      context.lineTo(at + ROW, y);
    }
    context.stroke();
    context.restore();
  }

  // Draws the name with its line, and the amount at the right. Between them is what distinguishes frames of one
  // function, as far as there is room: the source, then the place.
  drawLabel(box, y, matched) {
    const { app, colours, context } = this,
      { frame } = box,
      { names } = app;
    const name = plainText(names.label(frame.location)),
      line = names.place(frame.location) ? `:${names.line(frame.location)}` : "";
    const sign =
      app.weights.difference && frame.after !== frame.before ? (frame.after > frame.before ? "+ " : "− ") : "";
    let used = this.drawText(sign + name, box, y, colours.ink, matched ? 1 : 0.6, line);
    const amount = app.weights.difference
      ? sign && changeText(frame.after - frame.before, app.state.measure)
      : amountText(frame.weight, app.state.measure);
    const width = context.measureText(amount).width;
    let left = box.width - used - 3 * MARGIN;
    if (used === 0 || left <= width + MARGIN) return;
    context.globalAlpha = 0.72;
    context.fillText(amount, box.x + box.width - width - MARGIN, y + ROW / 2);
    context.globalAlpha = 1;
    left -= width + 2 * MARGIN;
    const place = plainText(shortFile(names.place(frame.location)));
    for (const [text, font] of [
      [plainText(names.source(frame.location)), CODE_FONT],
      [place, LABEL_FONT],
    ]) {
      if (text === "" || left < LEAST_DETAIL) continue;
      context.font = font;
      const room = { x: box.x + used + MARGIN, width: left + 2 * MARGIN };
      const taken = this.drawText(text, room, y, colours.ink, matched ? 0.62 : 0.4) + 2 * MARGIN;
      context.font = LABEL_FONT;
      used += taken;
      left -= taken;
    }
  }

  // Draws as much of the text as fits, followed by `end`. Omits `end` if otherwise no text would fit. Returns the
  // width.
  drawText(text, box, y, colour, alpha = 1, end = "") {
    const { context } = this,
      room = box.width - 2 * MARGIN;
    let shown = text + end,
      width = context.measureText(shown).width;
    for (let kept = Math.floor((shown.length * room) / width) - 1; width > room; kept--) {
      if (kept < 2) return 0;
      shown = kept - end.length < 2 ? `${text.slice(0, kept)}…` : `${text.slice(0, kept - end.length)}…${end}`;
      width = context.measureText(shown).width;
    }
    context.globalAlpha = alpha;
    context.fillStyle = colour;
    context.fillText(shown, box.x + MARGIN, y + ROW / 2);
    context.globalAlpha = 1;
    return width;
  }

  outline(frame, colour, thick) {
    if (frame === null || (frame === this.focused && document.activeElement !== this.box)) return;
    const box = this.boxOf(frame);
    if (box === undefined) return;
    this.context.strokeStyle = colour;
    this.context.lineWidth = thick;
    const y = (frame.depth - this.app.zoomed.depth) * ROW;
    this.context.strokeRect(box.x + thick / 2, y + thick / 2, Math.max(box.width - 1 - thick, 1), ROW - 1 - thick);
  }

  boxAt(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const x = event.clientX - bounds.left,
      y = event.clientY - bounds.top + this.box.scrollTop;
    const row = this.rows[Math.floor(y / ROW)] ?? [];
    return row.find((box) => x >= box.x && x < box.x + Math.max(box.width, 2));
  }

  hover(event) {
    const box = this.boxAt(event),
      frame = box?.frame ?? null;
    this.canvas.style.cursor = frame ? "pointer" : "default";
    if (frame !== this.hovered) {
      this.hovered = frame;
      this.draw();
    }
    if (frame) this.app.tip.show(frame, event.clientX, event.clientY);
    else this.app.tip.hide();
  }

  leave() {
    this.hovered = null;
    this.app.tip.hide();
    this.draw();
  }

  click(event) {
    const frame = this.boxAt(event)?.frame;
    if (!frame) return;
    this.focused = frame;
    this.app.zoomTo(frame);
  }
}
