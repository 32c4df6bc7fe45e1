// tip.js: describes a frame and its weight, beside the pointer.

class Tip {
  constructor(app) {
    this.app = app;
    this.box = byId("tip");
    this.frame = null;
  }

  rows(frame) {
    const { app } = this,
      { measure } = app.state,
      bytes = app.amounts(frame, "bytes"),
      blocks = app.amounts(frame, "blocks");
    if (app.weights.difference) {
      const one = measure === "bytes" ? bytes : blocks;
      const change = changeText(bytes.after - bytes.before, "bytes");
      return [
        ["before", amountText(one.before, measure)],
        ["after", amountText(one.after, measure)],
        ["change", `${change}, ${blocksText(blocks.after - blocks.before, true)}`],
      ];
    }
    const rows = [
      ["bytes", `${bytesText(bytes.weight)}${blocks.weight > 0 ? "" : " in no block"}`],
      ["blocks", blocks.weight > 0 ? `${countText(blocks.weight)}, ${averageText(bytes.weight, blocks.weight)}` : "0"],
      ["share of all", shareText(frame.weight, app.frames.root.weight)],
    ];
    if (app.zoomed.depth > 0) rows.push(["of what is zoomed to", shareText(frame.weight, app.zoomed.weight)]);
    rows.push([
      app.state.view === "inverted" ? "with no caller" : "in the frame itself",
      amountText(app.frames.ownWeight(frame), measure),
    ]);
    return rows;
  }

  note(frame) {
    const { names, frames } = this.app;
    if (names.kind(frame.location) === "cut")
      return (
        "These stacks were cut at the frame limit. " +
        "What is below is known; that it was called from here is a guess."
      );
    return frame === frames.imports ? "What importing modules takes. Click to see the stacks." : "";
  }

  show(frame, x, y) {
    const { app, box } = this;
    if (frame !== this.frame) {
      const table = element("table");
      for (const [name, value] of this.rows(frame))
        table.append(element("tr", {}, element("td", {}, name), element("td", {}, value)));
      const place = plainText(shownFile(app.names.place(frame.location))),
        source = plainText(app.names.source(frame.location)),
        kind = frame.location === 0 ? "" : KIND_NAMES[app.names.kind(frame.location)];
      box.replaceChildren(
        element("b", {}, plainText(app.names.label(frame.location))),
        element("div", { class: "place" }, [place, kind].filter(Boolean).join(" · ")),
        ...(source ? [element("code", {}, source)] : []),
        ...(this.note(frame) ? [element("p", {}, this.note(frame))] : []),
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
