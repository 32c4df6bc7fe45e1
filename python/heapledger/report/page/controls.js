// controls.js: everything above the graph: data about the captures, choices, search, what is hidden, the path, the
// theme.

const MOMENT_NAMES = { live: "Alive at the end", peak: "At the peak", allocated: "Allocated in all" };

const LEAST_EDGE = 8; // pixels between a menu and the edge of the window

function choices(id, options, chosen, choose) {
  const buttons = options.map(([value, text]) =>
    element(
      "button",
      {
        type: "button",
        role: "radio",
        "aria-checked": String(value === chosen),
        "data-value": value,
        "data-key": value,
        onclick: () => choose(value),
      },
      text,
    ),
  );
  refill(byId(id), ...(buttons.length > 1 ? buttons : []));
}

function theme() {
  const kept = (() => {
    try {
      return localStorage.getItem("heapledger-theme");
    } catch {
      return null;
    }
  })();
  return kept ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

function applyTheme(name) {
  document.documentElement.dataset.theme = name;
  byId("theme").textContent = name === "dark" ? "Light" : "Dark";
}

class Controls {
  constructor(app) {
    this.app = app;
    this.title();
    this.hideList();
    byId("search").addEventListener("input", (event) => app.update({ search: event.target.value }));
    byId("theme").addEventListener("click", () => this.turnTheme());
    byId("help-button").addEventListener("click", (event) => {
      byId("help").showModal();
      // The browser returns the focus to the button. A user of the pointer does not need it there.
      if (event.detail > 0) byId("help").addEventListener("close", () => byId("help-button").blur(), { once: true });
    });
    byId("about").open = matchMedia("(min-width: 701px)").matches;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      applyTheme(theme());
      app.graph.show();
    });
    document.addEventListener("keydown", (event) => this.press(event));
    document.addEventListener("toggle", (event) => this.keepInside(event.target), { capture: true });
    document.addEventListener("click", (event) => {
      for (const menu of document.querySelectorAll("details.menu[open]"))
        if (!menu.contains(event.target)) menu.open = false;
    });
  }

  title() {
    const { header } = this.app.data,
      last = header.captures.at(-1);
    const command = Array.isArray(last.command) ? last.command.map(String).join(" ") : "";
    const first = header.captures[0];
    byId("title").textContent = plainText(
      {
        one: () => last.label || "heapledger",
        difference: () => `${first.label || "before"} → ${last.label || "after"}`,
        series: () => `${header.captures.length} captures${first.label ? `, ${first.label} to ${last.label}` : ""}`,
      }[header.mode](),
    );
    const facts = [
      command,
      last.pid ? `process ${last.pid}` : "",
      last.host,
      last.python ? `Python ${last.python}` : "",
      typeof last.time === "number" ? new Date(last.time).toLocaleString() : "",
      header.confidential ? "names replaced" : "",
      last.lost_records ? `${countText(last.lost_records)} records lost` : "",
    ];
    byId("facts").textContent = plainText(facts.filter(Boolean).map(String).join(" · "));
  }

  // A menu that opens at the right edge moves left.
  keepInside(menu) {
    const body = menu.querySelector(".menu-body");
    if (body === null || !menu.open) return;
    body.style.translate = "";
    const over = body.getBoundingClientRect().right + LEAST_EDGE - document.documentElement.clientWidth;
    if (over > 0) body.style.translate = `${-over}px`;
  }

  press(event) {
    const typing = event.target.closest?.("input, textarea, dialog");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && !event.target.closest?.("dialog")) {
      for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false;
      this.app.update({ search: "", zoom: [] });
      if (typing) byId("graph").focus();
      return;
    }
    if (typing) return;
    const { state, data } = this.app,
      { moments } = data.header;
    const keys = {
      "/": () => byId("search").focus(),
      i: () => this.app.update({ view: state.view === "icicle" ? "inverted" : "icicle", zoom: [] }),
      b: () => this.app.update({ measure: state.measure === "bytes" ? "blocks" : "bytes" }),
      o: () => this.app.update({ fold: state.fold === "libraries" ? "imports" : "libraries", zoom: [] }),
      c: () => this.app.update({ changes: state.changes === "only" ? "all" : "only" }),
      m: () => this.app.update({ moment: moments[(moments.indexOf(state.moment) + 1) % moments.length] }),
      d: () => this.turnTheme(),
      "?": () => byId("help").showModal(),
    };
    if (!(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  }

  turnTheme() {
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("heapledger-theme", next);
    } catch {
      /* the choice lasts until the page is closed */
    }
    applyTheme(next);
    this.app.graph.show();
    this.legend();
  }

  show() {
    const { app } = this,
      { state, data } = app;
    choices(
      "moment",
      data.header.moments.map((name) => [name, MOMENT_NAMES[name]]),
      state.moment,
      (moment) => app.update({ moment }),
    );
    choices(
      "measure",
      [
        ["bytes", "Bytes"],
        ["blocks", "Blocks"],
      ],
      state.measure,
      (measure) => app.update({ measure }),
    );
    choices(
      "view",
      [
        ["icicle", "Callers first"],
        ["inverted", "Allocations first"],
      ],
      state.view,
      (view) => app.update({ view, zoom: [] }),
    );
    choices("fold", FOLDS, state.fold, (fold) => app.update({ fold, zoom: [] }));
    choices(
      "changes",
      app.weights.difference
        ? [
            ["only", "Changes only"],
            ["all", "Everything"],
          ]
        : [],
      state.changes,
      (changes) => app.update({ changes }),
    );
    choices("group", GROUPS, state.group, (group) => app.update({ group }));
    if (byId("search").value !== state.search) byId("search").value = state.search;
    this.totals();
    this.hiding();
    this.path();
    this.matched();
    this.legend();
    this.empty();
  }

  totals() {
    const { app } = this,
      { weights, state } = app,
      root = app.frames.root,
      said = [];
    const one = (name, value, ...more) =>
      said.push(element("div", {}, element("dt", {}, name), element("dd", {}, value, ...more)));
    if (weights.difference) {
      const [before, after] = [sumOf(weights.before), sumOf(weights.after)];
      one("Before", amountText(before, state.measure));
      one("After", amountText(after, state.measure));
      one("Change", changeText(after - before, state.measure));
    } else {
      const capture = app.data.header.captures[state.to];
      const other = totalOf(app.data.header, state.moment, state.to, state.measure === "bytes" ? "blocks" : "bytes");
      const more = state.measure === "bytes" ? `in ${blocksText(other)}` : `of ${bytesText(other)} in all`;
      one(MOMENT_NAMES[state.moment], amountText(root.weight, state.measure), element("small", {}, more));
      if (typeof capture.peak === "number" && state.moment !== "peak") one("Peak", bytesText(capture.peak));
      // The system was asked when the capture was taken. So its answer does not apply to other moments.
      if (capture.resident && state.moment === "live") one("Resident memory", ...this.resident(capture.resident));
    }
    refill(byId("totals"), ...said);
  }

  // What the system counts: a bar of its parts, and a list that explains them.
  resident({ rss, parts }) {
    const { header } = this.app.data,
      shown = Object.keys(header.resident).filter((name) => name in parts),
      whole = shown.reduce((sum, name) => sum + Math.max(parts[name], 0), 0);
    const bar = element("span", { class: "parts" });
    for (const name of shown) {
      const title = `${header.resident[name][0]}: ${bytesText(parts[name])}`;
      const piece = element("i", { class: `part-${name}`, title });
      piece.style.width = `${(100 * Math.max(parts[name], 0)) / (whole || 1)}%`;
      bar.append(piece);
    }
    const list = element("table");
    for (const name of shown)
      list.append(
        element(
          "tr",
          {},
          element("td", {}, bytesText(parts[name])),
          element("td", {}, element("i", { class: `part-${name}` }), header.resident[name][0]),
          element("td", {}, header.resident[name][1]),
        ),
      );
    const traced = `${bytesText(parts.traced)} of it traced, ${bytesText(parts.tables)} heapledger's own tables`;
    return [
      bytesText(rss),
      element("small", {}, traced),
      element(
        "details",
        { class: "menu", id: "resident" },
        element("summary", { "data-key": "resident", title: "What resident memory is made of" }, bar, " explain"),
        element("div", { class: "menu-body" }, list),
      ),
    ];
  }

  hideList() {
    const { app } = this;
    const { header } = app.data;
    const there = new Set(header.kindOfFile.map((kind) => header.kinds[kind]));
    const change = () => {
      const checked = [...byId("hide-list").querySelectorAll("input:checked")].map((box) => box.name);
      app.update({ hide: checked, zoom: [] });
    };
    byId("hide-list").replaceChildren(
      ...header.kinds
        .filter((kind) => there.has(kind) && kind !== "cut")
        .map((kind) =>
          element(
            "label",
            {},
            element("input", { type: "checkbox", name: kind, onchange: change }),
            element("span", {}, KIND_NAMES[kind]),
          ),
        ),
    );
  }

  hiding() {
    const hidden = this.app.state.hide;
    byId("hide-count").textContent = hidden.length > 0 ? ` (${hidden.length})` : "";
    for (const box of byId("hide-list").querySelectorAll("input")) box.checked = hidden.includes(box.name);
  }

  path() {
    const { app } = this,
      frames = [app.frames.root, ...pathOf(app.zoomed)],
      parts = [];
    const shown = frames.length > 8 ? [frames[0], null, ...frames.slice(-6)] : frames;
    for (const frame of shown) {
      if (parts.length > 0) parts.push(element("span", { class: "between", "aria-hidden": "true" }, "›"));
      if (frame === null) {
        parts.push(element("span", { class: "between" }, `${frames.length - 7} frames`));
        continue;
      }
      parts.push(
        element(
          "button",
          {
            type: "button",
            "data-key": frame.depth,
            title: plainText(app.names.place(frame.location)),
            "aria-current": frame === app.zoomed ? "true" : null,
            onclick: () => app.zoomTo(frame),
          },
          plainText(app.names.label(frame.location)),
        ),
      );
    }
    parts.push(element("span", { class: "between" }, shareText(app.zoomed.weight, app.frames.root.weight)));
    refill(byId("path"), ...parts);
  }

  matched() {
    const { app } = this,
      out = byId("matched");
    if (app.found === null) {
      out.textContent = "";
      return;
    }
    const weight = weightOfMatch(app.data.tree, app.found, app.weights),
      whole = app.frames.root.weight;
    out.textContent = app.found.includes(1)
      ? `${shareText(weight, whole) || "0.0%"} · ${amountText(weight, app.state.measure)}`
      : "nothing found";
  }

  legend() {
    const { app } = this,
      { header } = app.data,
      there = new Set(header.kindOfFile.map((kind) => header.kinds[kind])),
      hidden = hiddenKinds(header, app.state.fold, app.state.hide);
    if (app.frames.imports?.weight > 0) hidden.delete("importlib"); // the frame for all imports
    const entries = app.weights.difference
      ? [
          ["grew", "+ grew"],
          ["shrank", "− shrank"],
          ["same", "unchanged"],
        ]
      : header.kinds.filter((kind) => there.has(kind) && !hidden.has(kind)).map((kind) => [kind, KIND_NAMES[kind]]);
    byId("legend").replaceChildren(
      ...entries.map(([name, text]) => {
        const patch = element("i");
        patch.style.background = `hsl(var(--${name}))`;
        return element("span", {}, patch, text);
      }),
    );
  }

  empty() {
    const { app } = this,
      box = byId("empty"),
      nothing = app.frames.root.weight === 0;
    box.hidden = !nothing;
    byId("graph").hidden = nothing;
    byId("legend").hidden = nothing;
    if (nothing)
      box.replaceChildren(
        element("strong", {}, "Nothing here"),
        app.weights.difference
          ? "Neither of the two moments has any traced memory."
          : "No traced memory at this moment: was the program traced when it was captured?",
      );
  }
}
