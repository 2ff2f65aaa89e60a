"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const form = document.querySelector(".choose");
  const swatches = [...document.querySelectorAll(".swatch")];
  const drawn = new Set();
  // plotly's script is packed in the page (gzip, base64), in less than half of its size; at once, so that print has it
  function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)), HEADER = 10;
    const size = new DataView(bytes.buffer).getUint32(bytes.length - 4, true);
    const script = document.createElement("script");
    script.textContent = new TextDecoder().decode(inflate(bytes.subarray(HEADER), new Uint8Array(size)));
    document.head.append(script);
  }
  unpack(document.getElementById("plotly").textContent);
  const config = { responsive: true, displaylogo: false, showSendToCloud: false,
    plotlyServerURL: "", displayModeBar: "hover",
    modeBarButtons: [["toImage"], ["zoom2d", "pan2d", "resetScale2d"]] };

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const columnColour = (column) => column < 0 ? colour("--fg") : swatches[column] ? getComputedStyle(swatches[column]).color
    : colour(`--c${column % 10}`);
  const boxes = () => form ? [...form.querySelectorAll("input[name=column]")] : [];

  // plotly reads some HTML, links among it, in what it writes: names are no HTML
  const plain = (text) => Array.isArray(text) ? text.map(plain)
    : typeof text === "string" ? text.replaceAll("&", "&amp;").replaceAll("<", "&lt;") : text;
  const titled = (axis) => axis?.title ? { ...axis, title: { ...axis.title, text: plain(axis.title.text) } } : axis;

  function themed(figure) {
    const shown = boxes().map((box) => box.checked);
    const isLog = form?.elements.log?.checked;
    const ink = colour("--fg"), rule = colour("--rule");
    const axis = { gridcolor: rule, linecolor: rule, zerolinecolor: rule, automargin: true };
    const data = figure.data.map((trace) => {
      const c = columnColour(trace.meta);
      return { ...trace, name: plain(trace.name), text: plain(trace.text), x: plain(trace.x), visible: !trace.hidden && (shown[trace.meta] ?? true), marker: { ...trace.marker, color: c },
        line: trace.line && { ...trace.line, color: c },
        error_x: trace.error_x && { ...trace.error_x, color: c },
        error_y: trace.error_y && { ...trace.error_y, color: trace.type === "bar" ? ink : c } };
    });
    const layout = { ...figure.layout,
      annotations: figure.layout.annotations?.map((note) => ({ bgcolor: colour("--bg"), ...note })),
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: ink },
      hoverlabel: { bgcolor: colour("--panel"), bordercolor: rule, font: { color: ink } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--muted"), activecolor: ink },
      xaxis: { ...axis, ...titled(figure.layout.xaxis), showgrid: false },
      yaxis: { ...axis, type: isLog ? "log" : "linear", ...titled(figure.layout.yaxis) } };
    return [data, layout];
  }

  // printed: without boxes and menus, so with a legend; of the size that the page has on paper
  const root = document.documentElement;
  const printing = () => root.classList.contains("printing");
  function onPaper(div, data, layout) {
    const isNamed = form && data.length > 1 && data.some((trace) => trace.type !== "bar");
    const legend = { orientation: "h", y: 1, yanchor: "bottom", x: 0, font: { size: 9 } };
    return { ...layout, width: div.clientWidth, height: div.clientHeight, font: { ...layout.font, size: 10 },
      ...(isNamed && !div.nextElementSibling?.matches(".legend") ? { showlegend: true, legend } : {}) };
  }

  // texts of ticks that would overlap stand upright, each on one line; one too near the one before is left out
  function spaced(div, layout) {
    const { tickvals, ticktext, type } = layout.xaxis;
    if (!ticktext || tickvals.length < 2) return layout;
    const place = tickvals.map((value) => type === "log" ? Math.log(value) : value), first = Math.min(...place);
    const scale = 0.8 * (div.clientWidth - 96) / ((Math.max(...place) - first) || 1), x = place.map((p) => (p - first) * scale);
    const wide = ticktext.map((text) => 7 * Math.max(...text.split("<br>").map((line) => line.length)));
    if (x.every((at, k) => !k || at - x[k - 1] >= (wide[k] + wide[k - 1]) / 2)) return layout;
    let last = -Infinity;
    const texts = ticktext.map((text, k) => {
      if (x[k] - last < 13 || (k < x.length - 1 && x.at(-1) - x[k] < 13)) return "";
      last = x[k];
      return text.replaceAll("<br>", " · ");
    });
    return { ...layout, xaxis: { ...layout.xaxis, ticktext: texts, tickangle: -90 } };
  }

  const figureOf = (div) => figures[Number(div.id.slice("plot-".length))];

  function draw(div) {
    const [data, themedLayout] = themed(figureOf(div)), layout = spaced(div, themedLayout);
    Plotly.react(div, data, printing() ? onPaper(div, data, layout) : layout, config);
    // its text stands beside it; letters of axes would be read one by one
    div.querySelectorAll(".main-svg").forEach((svg) => svg.setAttribute("aria-hidden", "true"));
    drawn.add(div);
  }
  const redraw = () => drawn.forEach(draw);

  const shapes = {
    "circle": '<circle cx="11" cy="8" r="4.5"/>', "square": '<path d="M7 4h8v8H7z"/>',
    "diamond": '<path d="M11 2.5 16.5 8 11 13.5 5.5 8z"/>', "triangle-up": '<path d="M11 3l5 9H6z"/>',
    "cross": '<path d="M9.3 3h3.4v3.3H16v3.4h-3.3V13H9.3V9.7H6V6.3h3.3z"/>',
    "x": '<path d="M7.4 3 11 6.6 14.6 3 16 4.4 12.4 8l3.6 3.6-1.4 1.4L11 9.4 7.4 13 6 11.6 9.6 8 6 4.4z"/>',
    "star": '<path d="M11 2.5l1.6 3.8 4.1.3-3.1 2.7 1 4L11 11.1l-3.6 2.2 1-4-3.1-2.7 4.1-.3z"/>',
    "triangle-down": '<path d="M11 13l5-9H6z"/>',
  };
  for (const swatch of swatches) {
    swatch.innerHTML = '<svg viewBox="0 0 22 16" fill="currentColor">' +
      '<path d="M0 7h22v2H0z"/>' + shapes[swatch.dataset.symbol] + "</svg>";
  }

  const divs = [...document.querySelectorAll(".plot")];

  // a row a point, where it belongs if it is drawn beside that (customdata, with a text); whatever has no number is left empty
  function csv(figure) {
    const title = (axis) => figure.layout[axis]?.title?.text || (axis === "xaxis" ? "x" : "y");
    const isGantt = figure.data.some((trace) => trace.base);
    const hasSpread = figure.data.some((trace) => trace.error_y);
    const hasSides = figure.data.some((trace) => trace.error_y?.arrayminus);
    const spread = ({ error_y: bars }, i) => hasSides ? [(bars?.arrayminus ?? bars?.array)?.[i], bars?.array[i]]
      : hasSpread ? [bars?.array[i]] : [];
    const header = isGantt ? ["series", "start", "length", "line", "what"]
      : ["series", title("xaxis"), title("yaxis"), ...(hasSides ? ["minus", "plus"] : hasSpread ? ["plus or minus"] : [])];
    const rows = figure.data.flatMap((trace) => (trace.x ?? trace.y ?? []).map((_, i) => isGantt
      ? [trace.name, trace.base[i], trace.x[i], trace.y[i], trace.text[i]]
      : [trace.name, (trace.text && trace.customdata?.[i]) ?? trace.x?.[i], trace.y?.[i], ...spread(trace, i)]));
    // a spreadsheet takes a text that begins so for a formula
    const inert = (value) => typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value ?? "");
    const quoted = (value) => /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
    return [header, ...rows].map((row) => row.map((v) => quoted(inert(v))).join(",") + "\r\n")
      .join("");
  }

  function download(name, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  function addButton(div) {
    const caption = div.closest("figure")?.querySelector("figcaption");
    if (!caption) return;
    const words = (caption.querySelector("code") ?? caption.firstChild).textContent.trim();
    const page = document.title.replace(/^.* /, "");
    const name = `${page}-${words}-${div.id}`.replace(/[^\w.=-]+/g, "_") + ".csv";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "csv";
    button.textContent = "CSV";
    button.setAttribute("aria-label", `Download the numbers of ${words} as CSV`);
    button.addEventListener("click", () => download(name, csv(figureOf(div))));
    caption.append(" ", button);
  }

  // plotly's own legend can't be reached by keys: boxes stand in for it
  function addLegend(div) {
    const figure = figureOf(div);
    if (!figure.layout.showlegend) return;
    figure.layout.showlegend = false;
    const list = document.createElement("div");
    list.className = "legend";
    for (const trace of figure.data) {
      const label = document.createElement("label"), box = document.createElement("input");
      const swatch = document.createElement("span");
      box.type = "checkbox";
      box.checked = true;
      box.addEventListener("change", () => { trace.hidden = !box.checked; draw(div); });
      swatch.className = "dash";
      swatch.dataset.dash = trace.line?.dash ?? "solid";
      swatch.style.setProperty("--c", columnColour(trace.meta));
      dark.addEventListener("change", () => swatch.style.setProperty("--c", columnColour(trace.meta)));
      label.append(box, swatch, trace.name);
      list.append(label);
    }
    div.after(list);
  }

  divs.forEach(addButton);
  divs.forEach(addLegend);
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) { near.unobserve(entry.target); draw(entry.target); }
    }
  }, { rootMargin: "800px" });
  divs.forEach((div) => near.observe(div));
  if (form) {
    form.addEventListener("change", redraw);
    form.addEventListener("submit", (event) => event.preventDefault());
  }
  dark.addEventListener("change", redraw);
  // what is folded opens where a link leads into it, and in print
  function reveal() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const parts = [...target.querySelectorAll(":scope > details.part")];
    for (let e = target; e; e = e.parentElement) if (e.matches("details")) parts.push(e);
    parts.forEach((part) => { part.open = true; });
    if (parts.length) target.scrollIntoView();
  }
  window.addEventListener("hashchange", reveal);
  document.querySelectorAll('nav a').forEach((a) => a.addEventListener("click", () => setTimeout(reveal)));
  reveal();
  const MOST_FOLDED = 4000;  // letters of a detail that are worth paper; longer ones stay out
  let opened = [];
  function beforePrint() {
    if (printing()) return;
    opened = [...document.querySelectorAll("details:not([open])")].filter((d) => d.textContent.length < MOST_FOLDED || d.matches(".part"));
    opened.forEach((d) => { d.open = true; });
    root.classList.add("printing");
    divs.forEach(draw);
    for (const box of document.querySelectorAll(".scroll")) {
      if (box.scrollWidth > box.clientWidth) box.style.zoom = box.clientWidth / box.scrollWidth;
    }
  }
  function afterPrint() {
    root.classList.remove("printing");
    opened.forEach((d) => { d.open = false; });
    document.querySelectorAll(".scroll").forEach((box) => { box.style.zoom = ""; });
    setTimeout(redraw);  // with the colours of the screen
  }
  window.addEventListener("beforeprint", beforePrint);
  window.addEventListener("afterprint", afterPrint);
})();
