// graph.js: the flame graph: boxes from the zoomed frame down, drawn on a canvas as large as what is seen of it.
//
// Only frames of a pixel and more get a box; what is smaller beside them is one box for all. So a drawing costs as much
// as fits on the screen, whatever the size of the tree.

const ROW = 21,
  LEAST_WIDTH = 1,
  LEAST_LABEL = 34,
  MARGIN = 6;
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
  }

  // Lay out and draw what the app shows now.
  show() {
    const { frames, zoomed } = this.app;
    this.width = this.box.clientWidth;
    this.colours = new Colours();
    this.layOut(frames, zoomed);
    const height = this.rows.length * ROW + 1;
    this.space.style.height = `${height}px`;
    const shown = Math.max(Math.min(height, this.box.clientHeight), 1),
      ratio = window.devicePixelRatio || 1;
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${shown}px`;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(shown * ratio);
    if (this.focused === null || !this.isShown(this.focused)) this.focused = zoomed;
    this.draw();
  }

  layOut(frames, zoomed) {
    this.rows = [];
    if (zoomed.weight === 0) return;
    const waiting = [{ frame: zoomed, x: 0, width: this.width }];
    while (waiting.length > 0) {
      const box = waiting.pop();
      const row = box.frame.depth - zoomed.depth;
      (this.rows[row] ??= []).push(box);
      const children = frames.childrenOf(box.frame),
        scale = box.width / box.frame.weight;
      let x = box.x,
        i = 0;
      for (; i < children.length; i++) {
        const width = children[i].weight * scale;
        if (width < LEAST_WIDTH) break;
        waiting.push({ frame: children[i], x, width });
        x += width;
      }
      let rest = 0;
      for (let k = i; k < children.length; k++) rest += children[k].weight;
      if (rest * scale >= LEAST_WIDTH)
        (this.rows[row + 1] ??= []).push({
          frame: null,
          caller: box.frame,
          count: children.length - i,
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
    // Marks for whoever measures: when the page was first drawn, and last.
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
    return colours.ofKind(app.names.kind(frame.location), app.names.places.function[frame.location] + frame.location);
  }

  drawLabel(box, y, matched) {
    const { app, colours } = this,
      { frame } = box;
    const name = plainText(app.names.label(frame.location));
    const sign =
      app.weights.difference && frame.after !== frame.before ? (frame.after > frame.before ? "+ " : "− ") : "";
    const used = this.drawText(sign + name, box, y, colours.ink, matched ? 1 : 0.6);
    const amount = app.weights.difference
      ? sign && changeText(frame.after - frame.before, app.state.measure)
      : amountText(frame.weight, app.state.measure);
    const width = this.context.measureText(amount).width;
    let left = box.width - used - 3 * MARGIN;
    if (left > width + MARGIN) {
      this.context.globalAlpha = 0.72;
      this.context.fillText(amount, box.x + box.width - width - MARGIN, y + ROW / 2);
      left -= width + 2 * MARGIN;
      if (left > 60 && frame.location !== 0) {
        const place = `${plainText(shortFile(app.names.file(frame.location)))}:${app.names.line(frame.location)}`;
        if (this.context.measureText(place).width < left) {
          this.context.globalAlpha = 0.55;
          this.context.fillText(place, box.x + MARGIN + used + MARGIN, y + ROW / 2);
        }
      }
      this.context.globalAlpha = 1;
    }
  }

  // As much of the text as fits; the width it takes.
  drawText(text, box, y, colour, alpha = 1) {
    const { context } = this,
      room = box.width - 2 * MARGIN;
    let shown = text,
      width = context.measureText(shown).width;
    if (width > room) {
      const kept = Math.floor((text.length * room) / width) - 2;
      if (kept < 2) return 0;
      shown = `${text.slice(0, kept)}…`;
      width = room;
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

// What a frame is and weighs, beside the pointer.
class Tip {
  constructor(app) {
    this.app = app;
    this.box = byId("tip");
    this.frame = null;
  }

  rows(frame) {
    const { app } = this,
      { measure } = app.state,
      whole = app.frames.root.weight;
    if (app.weights.difference)
      return [
        ["before", amountText(frame.before, measure)],
        ["after", amountText(frame.after, measure)],
        ["change", changeText(frame.after - frame.before, measure)],
      ];
    const rows = [
      [measure, amountText(frame.weight, measure)],
      ["share of all", shareText(frame.weight, whole)],
    ];
    if (app.zoomed.depth > 0) rows.push(["of what is zoomed to", shareText(frame.weight, app.zoomed.weight)]);
    rows.push([
      app.state.view === "inverted" ? "with no caller" : "in the frame itself",
      amountText(app.frames.ownWeight(frame), measure),
    ]);
    return rows;
  }

  show(frame, x, y) {
    const { app, box } = this;
    if (frame !== this.frame) {
      const table = element("table");
      for (const [name, value] of this.rows(frame))
        table.append(element("tr", {}, element("td", {}, name), element("td", {}, value)));
      const kind = frame.location === 0 ? "" : ` · ${KIND_NAMES[app.names.kind(frame.location)]}`;
      box.replaceChildren(
        element("b", {}, plainText(app.names.label(frame.location))),
        element("div", { class: "place" }, plainText(app.names.place(frame.location)) + kind),
        table,
      );
      this.frame = frame;
    }
    box.hidden = false;
    box.style.left = `${Math.max(Math.min(x + 14, window.innerWidth - box.offsetWidth - 8), 8)}px`;
    const below = y + 20 + box.offsetHeight <= window.innerHeight;
    box.style.top = `${below ? y + 20 : Math.max(y - box.offsetHeight - 12, 8)}px`;
  }

  hide() {
    this.frame = null;
    this.box.hidden = true;
  }
}
