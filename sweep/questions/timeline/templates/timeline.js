"use strict";
(() => {
  const KINDS = { f8: Float64Array, i4: Int32Array, u1: Uint8Array, i8: BigInt64Array };
  const $ = (id) => document.getElementById(id);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const view = { t0: 0, t1: 1, rows: [] };  // shared times; of each run [first lane, last lane]
  let runs = [], ends = [0, 1], chosen = null, palette = [];

  async function unpack(run) {
    const bytes = Uint8Array.from(atob(run.data), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const buffer = await new Response(stream).arrayBuffer();
    for (const [name, [kind, offset, n]] of Object.entries(run.fields))
      run[name] = new KINDS[kind](buffer, offset, n);
    delete run.data;
    run.stop = new Int32Array(run.stage.length).fill(-1);  // of each bar: its row among the stops
    run.stopRow.forEach((row, k) => { run.stop[row] = k; });
    run.nLanes = run.laneMachine.length;
    run.waiting = waitingTasks(run);
    run.nMachines = run.capacity.length / run.resources.length;
    run.total = run.resources.map((_, r) => {
      let sum = 0;
      for (let m = 0; m < run.nMachines; m++) sum += run.capacity[m * run.resources.length + r];
      return sum;
    });
    return run;
  }

  // Number of waiting tasks after each time at which it changes.
  function waitingTasks(run) {
    const waits = [];
    run.ready.forEach((ready, k) => { if (run.start[k] > ready) waits.push(k); });
    const sorted = (times) => Float64Array.from(waits, (k) => times[k]).sort();
    const begins = sorted(run.ready), ends = sorted(run.start), times = [], values = [];
    for (let b = 0, e = 0; e < ends.length;) {
      const time = Math.min(b < begins.length ? begins[b] : Infinity, ends[e]);
      while (begins[b] === time) b++;
      while (ends[e] === time) e++;
      times.push(time);
      values.push(b - e);
    }
    return { times, values };
  }

  function mostWaiting({ times, values }) {  // at any instant of the view
    let low = 0, high = times.length, most = 0;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] > view.t0) high = middle; else low = middle + 1;
    }
    for (let k = Math.max(0, low - 1); k < times.length && times[k] < view.t1; k++) most = Math.max(most, values[k]);
    return most;
  }

  const machineName = (run, m) => run.machines[m] || `m${m}`;
  const number = (value) => Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en")
    : String(+value.toPrecision(4));
  const seconds = (value) => Number.isFinite(value) ? `${number(value)} s` : "never";
  const percent = (value) => `${(100 * value).toFixed(value < 0.1 ? 1 : 0)} %`;

  // ---- colours

  const EXPLAINED = { deadline: [["met", "--good"], ["missed", "--bad"], ["no deadline", "--base"]],
    pilot: [["pilots", "--c1"], ["other tasks", "--base"]],
    stop: [["stopped", "--bad"], ["ran to the end", "--base"]] };

  function colourOf(run, row) {
    const g = run.stage[row], j = run.stageJob[g];
    switch ($("colour").value) {
      case "template": return palette[run.jobTemplate[j] % 10];
      case "user": return palette[run.jobUser[j] % 10];
      case "queue": return palette[run.jobQueue[j] % 10];
      case "stage": return palette[(g - run.jobStage0[j]) % 10];
      case "stop": return run.stop[row] < 0 ? theme.base : theme.bad;
      case "pilot": return run.pilot[row] ? palette[1] : theme.base;
      case "deadline": return Number.isNaN(run.jobDeadline[j]) ? theme.base
        : run.jobFinish[j] <= run.jobDeadline[j] ? theme.good : theme.bad;
      default: return large === null ? palette[j % 10] : large.has(j) ? palette[large.get(j)] : theme.base;
    }
  }

  // ---- clusters: of very many bars only those of the largest jobs in view have colours

  const CROWD = 2000, LARGEST = 8;
  let large = null;  // job: colour; null if every job has one

  function cluster() {
    const before = large;
    large = null;
    $("clusters").replaceChildren();
    if ($("colour").value !== "job") return;
    const room = new Float64Array(runs[0].jobSubmit.length);
    let bars = 0, whole = 0, n = 0;
    for (const run of runs) {
      for (let row = 0; row < run.stage.length; row++) {
        const from = Math.max(run.start[row], view.t0), until = Math.min(run.finish[row], view.t1);
        if (!(until > from)) continue;
        bars++;
        room[run.stageJob[run.stage[row]]] += until - from;
        whole += until - from;
      }
    }
    if (bars > CROWD) {
      const jobs = [];
      room.forEach((value, job) => { if (value) jobs.push(job); });
      n = jobs.length;
      jobs.sort((a, b) => room[b] - room[a] || a - b);
      large = new Map();
      const free = new Set(palette.keys()), shown = jobs.slice(0, LARGEST);
      for (const job of shown) if (before?.has(job)) { large.set(job, before.get(job)); free.delete(before.get(job)); }
      for (const job of shown) if (!large.has(job)) {  // a job keeps its colour while it is shown
        const [colour] = free;
        large.set(job, colour);
        free.delete(colour);
      }
    }
    if (large !== null) explainClusters(room, whole, n);
  }

  function explainClusters(room, whole, n) {
    const place = $("clusters"), jobs = [...large.keys()].sort((a, b) => room[b] - room[a]);
    for (const job of jobs) {
      const item = make("span"), patch = make("i");
      const button = make("button", `${runs[0].jobs[job]} ${percent(room[job] / whole)}`);
      patch.style.background = palette[large.get(job)];
      button.type = "button";
      button.addEventListener("click", () => choose(job, false));
      item.append(patch, button);
      place.append(item);
    }
    if (n === jobs.length) return;
    const item = make("span"), rest = make("i"), others = jobs.reduce((sum, job) => sum - room[job], whole);
    rest.style.background = theme.base;
    item.append(rest, `${number(n - jobs.length)} smaller jobs ${percent(Math.max(0, others / whole))}`);
    place.append(item);
  }

  const theme = {};
  function readColours() {
    for (const name of ["fg", "bg", "base", "good", "bad", "muted", "rule", "accent", "panel"])
      theme[name] = css(`--${name}`);
    palette = Array.from({ length: 10 }, (_, k) => css(`--c${k}`));
    const key = $("key");
    key.replaceChildren();
    for (const [words, name] of EXPLAINED[$("colour").value] ?? []) {
      const patch = document.createElement("i");
      patch.style.background = css(name);
      key.append(patch, words);
    }
    if (!runs.some((run) => run.stopRow.length)) return;
    const places = runs.length > 1 ? ["above: ", "below: "] : [""];
    const counts = runs.map((run, n) => places[n] + (countStops(run, run.stopRow.keys()) || "none"));
    const patch = make("i", "", "stopped");
    key.append(patch, `attempts that were stopped (${counts.join("; ")})`);
  }

  function countStops(run, stops) {  // "2 evicted, 1 failed"
    const counts = run.reasons.map(() => 0);
    for (const k of stops) counts[run.stopReason[k]]++;
    return run.reasons.map((reason, r) => counts[r] ? `${number(counts[r])} ${reason}` : "").filter(Boolean).join(", ");
  }

  // ---- drawing

  function begin(canvas) {
    const box = canvas.getBoundingClientRect(), scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(box.width * scale);
    canvas.height = Math.round(box.height * scale);
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.font = "12px system-ui, sans-serif";
    return [pen, box.width, box.height];
  }

  // A bar; stopped attempts are striped from their top to their end, lower where they are narrow.
  function drawBar(pen, run, row, x, y, w, h) {
    pen.fillStyle = colourOf(run, row);
    if (run.stop[row] < 0) { pen.fillRect(x, y, w, h); return; }
    if (w < 5 || h < 4) { pen.fillRect(x, y + h / 2, w, h / 2); return; }
    pen.fillRect(x, y, w, h);
    pen.save();
    pen.beginPath();
    pen.rect(x, y, w, h);
    pen.clip();
    pen.strokeStyle = theme.bg;
    pen.lineWidth = 2;
    pen.beginPath();
    const first = Math.max(x, LEFT - 8), last = Math.min(x + w, pen.canvas.width);
    for (let at = first - h - (first - h) % 8; at < last; at += 8) { pen.moveTo(at, y + h); pen.lineTo(at + h, y); }
    pen.stroke();
    pen.restore();
  }

  const LEFT = 56, BOTTOM = 20;
  const toX = (t, width) => LEFT + (t - view.t0) / (view.t1 - view.t0) * (width - LEFT);
  const toTime = (x, width) => view.t0 + (x - LEFT) / (width - LEFT) * (view.t1 - view.t0);

  function firstAfter(finish, low, high, time) {  // of bars in a lane: the first that ends later
    while (low < high) {
      const middle = (low + high) >> 1;
      if (finish[middle] > time) high = middle; else low = middle + 1;
    }
    return low;
  }

  // Two levels of detail: bars narrower than a pixel are passed over by bisection, and of lanes
  // lower than a pixel one is drawn for each row of pixels. So a frame costs about one step a pixel.
  function drawGantt(canvas) {
    const n = Number(canvas.dataset.run), run = runs[n];
    const [pen, width, height] = begin(canvas), [y0, y1] = view.rows[n];
    const rowHeight = (height - BOTTOM) / (y1 - y0), pixel = (view.t1 - view.t0) / (width - LEFT);
    const step = Math.max(1, 1 / rowHeight);
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, width - LEFT, height - BOTTOM);
    pen.clip();
    for (let lane = Math.floor(y0); lane < Math.min(run.nLanes, y1); lane += step) {
      const l = Math.floor(lane), last = run.lane0[l + 1];
      const y = (l - y0) * rowHeight, h = Math.max(1, rowHeight - (rowHeight > 4 ? 1 : 0));
      let row = firstAfter(run.finish, run.lane0[l], last, view.t0);
      while (row < last && run.start[row] < view.t1) {
        const x = toX(run.start[row], width), w = toX(run.finish[row], width) - x;
        const own = chosen !== null && run.stageJob[run.stage[row]] === chosen;
        const isSmall = large !== null && !large.has(run.stageJob[run.stage[row]]);
        pen.globalAlpha = chosen === null ? (isSmall ? 0.5 : 1) : own ? 1 : 0.22;
        drawBar(pen, run, row, x, y, Math.max(w - (w > 3 ? 0.5 : 0), 0.6), h);
        if (run.pilot[row] && w > 3 && h > 4) {
          pen.globalAlpha = 1;
          pen.strokeStyle = theme.fg;
          pen.setLineDash([3, 2]);
          pen.strokeRect(x + 1, y + 1, w - 2.5, h - 2);
          pen.setLineDash([]);
        }
        if (w > 46 && h > 12) {
          pen.globalAlpha = chosen === null || own ? 1 : 0.5;
          const k = run.stop[row], left = Math.max(x, LEFT), room = Math.floor((Math.min(x + w, width) - left) / 7);
          const name = `${run.jobs[run.stageJob[run.stage[row]]]} ${run.stageNames[run.stageName[run.stage[row]]]}`;
          const words = (k < 0 ? name : `${run.reasons[run.stopReason[k]]}: ${name}`).slice(0, room);
          if (k >= 0) {
            pen.fillStyle = colourOf(run, row);
            pen.fillRect(left, y + h / 2 - 7, Math.min(pen.measureText(words).width + 6, x + w - left), 14);
          }
          pen.fillStyle = theme.bg;
          pen.fillText(words, left + 3, y + h / 2 + 4);
        }
        row = w < 1 ? Math.max(row + 1, firstAfter(run.finish, row, last, run.start[row] + pixel)) : row + 1;
      }
    }
    pen.globalAlpha = 1;
    if (chosen !== null) drawJob(pen, run, width, height, y0, rowHeight);
    pen.restore();
    drawLanes(pen, run, height, y0, y1, rowHeight);
    drawTimes(pen, width, height);
  }

  function drawJob(pen, run, width, height, y0, rowHeight) {
    const ends = stageEnds(run, chosen), middle = (row) => (laneOf(run, row) - y0 + 0.5) * rowHeight;
    pen.strokeStyle = theme.fg;
    pen.lineWidth = 1;
    for (let row = 0, lane = 0; row < run.stage.length; row++) {  // over all others, however low
      if (run.stageJob[run.stage[row]] !== chosen || run.finish[row] < view.t0 || run.start[row] > view.t1) continue;
      while (run.lane0[lane + 1] <= row) lane++;
      const x = toX(run.start[row], width), w = Math.max(2, toX(run.finish[row], width) - x);
      const h = Math.max(4, rowHeight - 1), y = (lane - y0 + 0.5) * rowHeight - h / 2;
      drawBar(pen, run, row, x, y, w, h);
      pen.strokeRect(x, y, w, h);
    }
    for (let e = 0; e < run.edgeParent.length; e++) {
      const p = ends.get(run.edgeParent[e]), c = ends.get(run.edgeChild[e]);
      if (!p || !c) continue;
      let from = p.last;  // or, if some ran later, the last before the child's first
      if (run.finish[from] > run.start[c.first])
        from = p.rows.reduce((best, row) => run.finish[row] <= run.start[c.first] && (best < 0 || run.finish[row] > run.finish[best]) ? row : best, -1);
      if (from < 0) continue;
      const x0 = toX(run.finish[from], width), x1 = toX(run.start[c.first], width), bend = Math.max(20, (x1 - x0) / 2);
      pen.beginPath();
      pen.moveTo(x0, middle(from));
      pen.bezierCurveTo(x0 + bend, middle(from), x1 - bend, middle(c.first), x1, middle(c.first));
      pen.stroke();
    }
    for (const [time, words, colour] of [[run.jobSubmit[chosen], "submitted", theme.muted], [run.jobFinish[chosen], "done", theme.muted], [run.jobDeadline[chosen], "due", theme.bad]]) {
      if (!Number.isFinite(time)) continue;
      const x = toX(time, width);
      pen.strokeStyle = pen.fillStyle = colour;
      pen.setLineDash([5, 3]);
      pen.beginPath();
      pen.moveTo(x, 0);
      pen.lineTo(x, height);
      pen.stroke();
      pen.setLineDash([]);
      pen.fillText(words, x + 3, height - BOTTOM - 4);
    }
  }

  function laneOf(run, row) {
    let low = 0, high = run.nLanes;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (run.lane0[middle + 1] > row) high = middle; else low = middle + 1;
    }
    return low;
  }

  function stageEnds(run, job) {  // bars of a job: of each stage the first to start and last to end
    const found = new Map();
    for (let row = 0; row < run.stage.length; row++) {
      const g = run.stage[row];
      if (run.stageJob[g] !== job) continue;
      const ends = found.get(g);
      if (!ends) { found.set(g, { first: row, last: row, rows: [row] }); continue; }
      ends.rows.push(row);
      if (run.start[row] < run.start[ends.first]) ends.first = row;
      if (run.finish[row] > run.finish[ends.last]) ends.last = row;
    }
    return found;
  }

  function drawLanes(pen, run, height, y0, y1, rowHeight) {
    pen.fillStyle = theme.muted;
    pen.textAlign = "right";
    let before = -20;
    for (let l = Math.max(0, Math.floor(y0)); l < Math.min(run.nLanes, y1); l++) {
      const isFirst = run.isPool || l === 0 || run.laneMachine[l] !== run.laneMachine[l - 1];
      const y = (l - y0) * rowHeight;
      if (!isFirst || y - before < 16 || y > height - BOTTOM - 8 || y < -1) continue;
      const name = run.isPool ? `${l}` : machineName(run, run.laneMachine[l]);
      pen.fillText(name.length > 8 ? `…${name.slice(-7)}` : name, LEFT - 6, y + 12);
      before = y;
    }
    pen.textAlign = "left";
  }

  function drawTimes(pen, width, height) {
    const span = view.t1 - view.t0, rough = span / Math.max(2, (width - LEFT) / 110);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough);
    pen.fillStyle = theme.muted;
    pen.strokeStyle = theme.rule;
    for (let t = Math.ceil(view.t0 / step) * step; t <= view.t1; t += step) {
      const x = toX(t, width);
      pen.beginPath();
      pen.moveTo(x, height - BOTTOM);
      pen.lineTo(x, height - BOTTOM + 4);
      pen.stroke();
      const words = `${number(t)} s`;
      pen.fillText(words, Math.min(x + 2, width - pen.measureText(words).width), height - 4);
    }
  }

  // Mean of a sum over each pixel: each bar adds its overlap with the first and the last, and a
  // constant between.
  function average(begin, end, amount, bins) {
    const sums = new Float64Array(bins + 1), slope = new Float64Array(bins + 2);
    const scale = bins / (view.t1 - view.t0);
    for (let k = 0; k < begin.length; k++) {
      const b = Math.max(0, (begin[k] - view.t0) * scale), e = Math.min(bins, (end[k] - view.t0) * scale);
      if (!(e > b)) continue;
      const first = Math.floor(b), last = Math.floor(e), a = amount ? amount(k) : 1;
      if (first === last) { sums[first] += a * (e - b); continue; }
      sums[first] += a * (first + 1 - b);
      sums[last] += a * (e - last);
      slope[first + 1] += a;
      slope[last] -= a;
    }
    let level = 0;
    for (let b = 0; b < bins; b++) { level += slope[b]; sums[b] += level; }
    return sums.subarray(0, bins);
  }

  function drawSeries(canvas) {
    const run = runs[Number(canvas.dataset.run)], [pen, width, height] = begin(canvas);
    const bins = Math.max(10, Math.floor(width - LEFT)), R = run.resources.length, half = height / 2;
    const waiting = average(run.ready, run.start, null, bins);
    const most = mostWaiting(run.waiting);
    canvas.dataset.most = most;
    curve(pen, waiting, most || 1, 4, half - 6, theme.accent, true);
    label(pen, "waiting tasks, and most at once", LEFT + 4, 14, theme.fg);
    pen.textAlign = "right";
    pen.fillStyle = theme.muted;
    pen.fillText(number(most), LEFT - 6, 14);
    pen.fillText("100 %", LEFT - 6, half + 12);
    pen.textAlign = "left";
    let x = LEFT + 4;
    for (let r = 0; r < R; r++) {
      const used = average(run.start, run.finish, (k) => run.demand[run.stage[k] * R + r], bins);
      curve(pen, used, run.total[r], half + 4, half - 6, palette[r % 10], false);
      const words = run.isPool ? "slots in use" : `${run.resources[r]} in use`;
      x += label(pen, words, x, half + 16, palette[r % 10]) + 14;
    }
  }

  function label(pen, words, x, y, colour) {
    const width = pen.measureText(words).width;
    pen.globalAlpha = 0.8;
    pen.fillStyle = theme.bg;
    pen.fillRect(x - 2, y - 11, width + 4, 14);
    pen.globalAlpha = 1;
    pen.fillStyle = colour;
    pen.fillText(words, x, y);
    return width;
  }

  function curve(pen, values, most, top, height, colour, isFilled) {
    pen.beginPath();
    values.forEach((value, k) => {
      const y = top + height * (1 - Math.min(1, value / most));
      if (k) pen.lineTo(LEFT + k, y); else pen.moveTo(LEFT, y);
    });
    pen.strokeStyle = colour;
    pen.stroke();
    if (!isFilled) return;
    pen.lineTo(LEFT + values.length, top + height);
    pen.lineTo(LEFT, top + height);
    pen.globalAlpha = 0.25;
    pen.fillStyle = colour;
    pen.fill();
    pen.globalAlpha = 1;
  }

  let isPending = false;
  function redraw() {
    if (isPending) return;
    isPending = true;
    requestAnimationFrame(() => {
      isPending = false;
      cluster();
      document.querySelectorAll("canvas.gantt").forEach(drawGantt);
      document.querySelectorAll("canvas.series").forEach(drawSeries);
    });
  }

  // ---- moving

  function zoom(factor, at = (view.t0 + view.t1) / 2) {
    const least = (ends[1] - ends[0]) * 1e-7;
    const span = Math.min((ends[1] - ends[0]) * 1.02, Math.max(least, (view.t1 - view.t0) * factor));
    const share = (at - view.t0) / (view.t1 - view.t0);
    view.t0 = at - share * span;
    view.t1 = view.t0 + span;
    shift(0);
  }

  function shift(by) {
    const span = view.t1 - view.t0, margin = 0.01 * (ends[1] - ends[0]);
    view.t0 = Math.max(ends[0] - margin, Math.min(view.t0 + by, ends[1] + margin - span));
    view.t1 = view.t0 + span;
    redraw();
  }

  function moveRows(n, by, factor = 1, at = 0.5) {
    const most = runs[n].nLanes, [y0, y1] = view.rows[n];
    const span = Math.min(most, Math.max(3, (y1 - y0) * factor));
    const first = Math.max(0, Math.min(y0 + at * (y1 - y0 - span) + by, most - span));
    view.rows[n] = [first, first + span];
    redraw();
  }

  function fit() {
    const margin = 0.01 * (ends[1] - ends[0]);
    view.t0 = ends[0] - margin;
    view.t1 = ends[1] + margin;
    view.rows = runs.map((run) => [0, run.nLanes]);
    redraw();
  }

  function rowAt(canvas, event) {
    const n = Number(canvas.dataset.run), run = runs[n], box = canvas.getBoundingClientRect();
    const [y0, y1] = view.rows[n], y = event.clientY - box.top, x = event.clientX - box.left;
    const lane = Math.floor(y0 + y / (box.height - BOTTOM) * (y1 - y0)), time = toTime(x, box.width);
    if (x < LEFT || lane < 0 || lane >= run.nLanes) return -1;
    const slack = (view.t1 - view.t0) / (box.width - LEFT);
    const row = firstAfter(run.finish, run.lane0[lane], run.lane0[lane + 1], time - slack);
    return row < run.lane0[lane + 1] && run.start[row] <= time + slack ? row : -1;
  }

  function listen(canvas) {
    const n = Number(canvas.dataset.run), held = new Map();
    let moved = 0, apart = 0;
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = canvas.getBoundingClientRect(), by = event.deltaY || event.deltaX;
      const factor = Math.exp(Math.max(-1, Math.min(1, by / 300)));
      if (event.shiftKey) moveRows(n, 0, factor, (event.clientY - box.top) / box.height);
      else zoom(factor, toTime(event.clientX - box.left, box.width));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      held.set(event.pointerId, event);
      moved = apart = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = held.get(event.pointerId), box = canvas.getBoundingClientRect();
      if (!before) { tip(canvas, event); return; }
      held.set(event.pointerId, event);
      if (held.size === 2) {
        const [a, b] = [...held.values()], now = Math.abs(a.clientX - b.clientX);
        if (apart && now) zoom(apart / now, toTime((a.clientX + b.clientX) / 2 - box.left, box.width));
        apart = now;
        moved = 10;
        return;
      }
      const dx = event.clientX - before.clientX, dy = event.clientY - before.clientY;
      moved += Math.abs(dx) + Math.abs(dy);
      shift(-dx / (box.width - LEFT) * (view.t1 - view.t0));
      const [y0, y1] = view.rows[n];
      moveRows(n, -dy / (box.height - BOTTOM) * (y1 - y0));
    });
    const release = (event) => {
      if (held.delete(event.pointerId) && event.type === "pointerup" && moved < 4) {
        const row = rowAt(canvas, event);
        choose(row < 0 ? null : runs[n].stageJob[runs[n].stage[row]]);
      }
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointerleave", () => { $("tip").hidden = true; });
    canvas.addEventListener("keydown", (event) => {
      const span = view.t1 - view.t0, rows = view.rows[n][1] - view.rows[n][0];
      const act = { ArrowLeft: () => shift(-0.2 * span), ArrowRight: () => shift(0.2 * span),
        ArrowUp: () => moveRows(n, -0.2 * rows), ArrowDown: () => moveRows(n, 0.2 * rows),
        "+": () => zoom(0.6), "-": () => zoom(1 / 0.6), Escape: () => choose(null), Home: fit }[event.key];
      if (act) { event.preventDefault(); act(); }
    });
  }

  function tip(canvas, event) {
    const run = runs[Number(canvas.dataset.run)], row = rowAt(canvas, event), box = $("tip");
    box.hidden = row < 0;
    if (row < 0) return;
    const g = run.stage[row], j = run.stageJob[g];
    const place = run.isPool ? "" : ` on ${machineName(run, run.laneMachine[laneOf(run, row)])}`;
    box.textContent = `${run.jobs[j]}, ${run.stageNames[run.stageName[g]]}${run.pilot[row] ? " (pilot)" : ""}${place}: ${number(run.start[row])} to ${number(run.finish[row])} s, waited ${seconds(run.start[row] - run.ready[row])}${run.stop[row] < 0 ? "" : `; stopped: ${run.reasons[run.stopReason[run.stop[row]]]}`}`;
    box.style.left = `${Math.min(event.clientX + 12, window.innerWidth - 260)}px`;
    box.style.top = `${event.clientY + 14}px`;
  }

  // ---- the chosen job

  function choose(job, isSeen = true) {
    chosen = job;
    $("search").value = job === null ? "" : runs[0].jobs[job];
    if (job !== null && !isSeen) {
      const begin = Math.min(...runs.map((run) => run.jobSubmit[job]));
      const end = Math.max(...runs.map((run) => Number.isFinite(run.jobFinish[job]) ? run.jobFinish[job] : begin));
      const margin = 0.15 * (end - begin) || 1;
      view.t0 = begin - margin;
      view.t1 = end + margin;
      shift(0);
    }
    explain();
    redraw();
  }

  function make(tag, words = "", name = "") {
    const element = document.createElement(tag);
    element.textContent = words;
    if (name) element.className = name;
    return element;
  }

  function table(heads, rows) {
    const made = document.createElement("table"), head = made.createTHead().insertRow();
    for (const words of heads) { const cell = make("th", words); cell.scope = "col"; head.append(cell); }
    const body = made.createTBody();
    for (const row of rows) {
      const line = body.insertRow();
      for (const value of row) {
        const cell = line.insertCell();
        if (value instanceof Node) cell.append(value); else cell.textContent = value;
      }
    }
    return made;
  }

  function explain() {
    const place = $("job");
    place.replaceChildren();
    if (chosen === null) { place.append(make("p", "Choose a bar, or type a job’s name: when it was ready, when it started, who ran meanwhile, and which resource was short.", "note")); return; }
    place.append(make("h2", `Job ${runs[0].jobs[chosen]}`));
    runs.forEach((run, n) => {
      if (runs.length > 1) place.append(make("h3", run.title));
      describe(place, run, n);
    });
  }

  function describe(place, run, n) {
    const j = chosen, list = document.createElement("dl");
    const add = (name, value, style = "") => list.append(make("dt", name), make("dd", value, style));
    const isLate = run.jobFinish[j] > run.jobDeadline[j];
    add("submitted", seconds(run.jobSubmit[j]));
    add("started", Number.isFinite(run.jobStart[j]) ? `${seconds(run.jobStart[j])} (waited ${seconds(run.jobStart[j] - run.jobSubmit[j])})` : "never");
    add("done", run.jobFailed[j] ? "failed: an input was missing" : `${seconds(run.jobFinish[j])} (JCT ${seconds(run.jobFinish[j] - run.jobSubmit[j])})`, run.jobFailed[j] ? "late" : "");
    if (Number.isFinite(run.jobDeadline[j])) add("due", `${seconds(run.jobDeadline[j])}: ${isLate ? "missed" : "met"}, utility ${+run.jobUtility[j].toPrecision(3)}`, isLate ? "late" : "");
    for (const [name, names, codes] of [["user", run.users, run.jobUser], ["queue", run.queues, run.jobQueue], ["program", run.templates, run.jobTemplate]])
      if (names[codes[j]]) add(name, names[codes[j]]);
    add("work", seconds(run.jobWork[j]) + (Number.isFinite(run.jobEstimate[j]) ? `; the policy expected ${seconds(run.jobEstimate[j])}` : ""));
    if (Number.isFinite(run.jobWorth[j])) add("worth", `${+run.jobWorth[j].toPrecision(3)}, as the policy set it last`);
    const stops = [];  // of this job, by the time of their stop
    for (let k = 0; k < run.stopRow.length; k++) if (run.stageJob[run.stage[run.stopRow[k]]] === j) stops.push(k);
    stops.sort((a, b) => run.finish[run.stopRow[a]] - run.finish[run.stopRow[b]]);
    const wasted = (k) => run.finish[run.stopRow[k]] - run.start[run.stopRow[k]];
    if (stops.length) add("stopped", `${countStops(run, stops)}: wasted ${seconds(stops.reduce((sum, k) => sum + wasted(k), 0))}`);
    place.append(list);
    const stages = [];
    for (let g = run.jobStage0[j]; g < run.jobStage0[j + 1]; g++) stages.push(g);
    const wait = (g) => run.stageStart[g] - run.stageReady[g];
    const drawn = stages.filter((g) => Number.isFinite(wait(g)));
    place.append(make("h3", "Stages"), table(["stage", "tasks", "ready", "waited", "done"], stages.slice(0, 60).map((g) => {
      const button = make("button", run.stageNames[run.stageName[g]]);
      button.type = "button";
      button.addEventListener("click", () => why(run, n, g));
      return [button, number(run.stageTasks[g]), number(run.stageReady[g]), seconds(wait(g)), number(run.stageFinish[g])];
    })));
    if (stages.length > 60) place.append(make("p", `and ${stages.length - 60} more stages`, "note"));
    if (stops.length) place.append(make("h3", "Stopped attempts"), table(["task", "at", "because", "wasted"], stops.slice(0, 60).map((k) => {
      const g = run.stage[run.stopRow[k]];
      return [`${run.stageNames[run.stageName[g]]} ${run.stopTask[k]}`, seconds(run.finish[run.stopRow[k]]), run.reasons[run.stopReason[k]], seconds(wasted(k))];
    })));
    if (stops.length > 60) place.append(make("p", `and ${stops.length - 60} more`, "note"));
    const reason = make("div");
    reason.id = `why-${n}`;
    place.append(reason);
    if (drawn.length) why(run, n, drawn.reduce((a, b) => wait(b) > wait(a) ? b : a));
  }

  const INSTANTS = 64;

  // From ready to started: who held the resources meanwhile, and what was short at `INSTANTS`
  // instants. A resource is short where no machine has enough of it for one task of the stage, or
  // all machines together not for the tasks of a gang, which start at once.
  function why(run, n, g) {
    const place = $(`why-${n}`), begin = run.stageReady[g], end = run.stageStart[g], R = run.resources.length;
    const name = run.stageNames[run.stageName[g]];
    place.replaceChildren(make("h3", `Why ${name} waited`));
    if (!(end - begin > 1e-9 * Math.max(1, end))) { place.append(make("p", "It did not: it started as soon as its inputs were there.")); return; }
    const used = new Float64Array(INSTANTS * run.nMachines * R), by = new Map();
    const at = (k) => begin + (k + 0.5) / INSTANTS * (end - begin);
    for (let lane = 0; lane < run.nLanes; lane++) {
      const m = run.laneMachine[lane], last = run.lane0[lane + 1];
      for (let row = firstAfter(run.finish, run.lane0[lane], last, begin); row < last && run.start[row] < end; row++) {
        const h = run.stage[row], from = Math.max(begin, run.start[row]), until = Math.min(end, run.finish[row]);
        const job = run.stageJob[h];
        let held = by.get(job);
        if (!held) by.set(job, held = new Float64Array(R));
        for (let r = 0; r < R; r++) held[r] += run.demand[h * R + r] * (until - from);
        const first = Math.max(0, Math.ceil((from - begin) / (end - begin) * INSTANTS - 0.5));
        for (let k = first; k < INSTANTS && at(k) < until; k++)
          for (let r = 0; r < R; r++) used[(k * run.nMachines + m) * R + r] += run.demand[h * R + r];
      }
    }
    const short = new Float64Array(R), own = run.stageJob[g];
    const isFirst = run.stageStart[g] <= run.jobStart[own];  // later stages have the gang's slots
    const atOnce = isFirst ? Math.max(1, run.jobGang[own]) : 1;
    let fragmented = 0, room = 0;
    for (let k = 0; k < INSTANTS; k++) {
      const fitting = new Float64Array(R);  // tasks, by each resource alone
      let together = 0;
      for (let m = 0; m < run.nMachines; m++) {
        let all = atOnce;
        for (let r = 0; r < R; r++) {
          const capacity = run.capacity[m * R + r], free = capacity - used[(k * run.nMachines + m) * R + r];
          const demand = run.demand[g * R + r];
          const tasks = demand > 0 ? Math.floor(Math.max(0, free + 1e-9 * capacity) / demand) : atOnce;
          fitting[r] += tasks;
          all = Math.min(all, tasks);
        }
        together += all;
      }
      if (together >= atOnce) room++;
      else if (fitting.every((tasks) => tasks >= atOnce)) fragmented++;
      fitting.forEach((tasks, r) => { if (tasks < atOnce) short[r]++; });
    }
    const of = (count) => percent(count / INSTANTS);
    const words = [];
    for (let r = 0; r < R; r++) if (short[r]) words.push(`${run.isPool ? "slots were" : `${run.resources[r]} was`} short ${of(short[r])} of the time: ${atOnce > 1 ? `there was not enough for ${number(atOnce)} tasks at once` : run.isPool ? "all were taken" : "no machine had enough for a task"}.`);
    if (fragmented) words.push(`${of(fragmented)} of the time each resource was free somewhere, but not all of them together on machines.`);
    if (room) words.push(`${of(room)} of the time there was room${atOnce > 1 ? ` for ${number(atOnce)} tasks at once` : ""}: the policy held it back (its order, a limit, a reservation, its queue’s share, pilots, or a launch lag).`);
    place.append(make("p", `Ready at ${seconds(begin)}, started at ${seconds(end)}.`), ...words.map((line) => make("p", line)));
    const bottleneck = short.reduce((best, value, r) => value > short[best] ? r : best, 0);
    const total = run.total[bottleneck] * (end - begin);
    const ran = [...by].sort((a, b) => b[1][bottleneck] - a[1][bottleneck]).slice(0, 6);
    if (!ran.length) return;
    place.append(make("p", "Who ran meanwhile:"), table(["job", `share of ${run.isPool ? "slots" : run.resources[bottleneck]}`, "submitted"], ran.map(([job, held]) => {
      const button = make("button", run.jobs[job]);
      button.type = "button";
      button.addEventListener("click", () => choose(job, false));
      return [button, percent(held[bottleneck] / total), number(run.jobSubmit[job])];
    })));
  }

  // ---- begin

  function search() {
    const text = $("search").value.trim(), job = runs[0].jobs.indexOf(text);
    const list = $("jobs");
    list.replaceChildren(...(text ? runs[0].jobs.filter((name) => name.includes(text)).slice(0, 30) : []).map((name) => {
      const option = document.createElement("option");
      option.value = name;
      return option;
    }));
    if (job >= 0 && job !== chosen) choose(job, false);
  }

  async function start() {
    runs = await Promise.all(JSON.parse($("data").textContent).map(unpack));
    if (runs.length > 1) document.body.classList.add("two");
    const first = Math.min(...runs.map((run) => run.jobSubmit.reduce((a, b) => Math.min(a, b))));
    const last = Math.max(...runs.map((run) => run.finish.reduce((a, b) => Math.max(a, b))));
    ends = [first, last > first ? last : first + 1];
    const bars = runs[0].stage.length - runs[0].stopRow.length;
    $("about").textContent = `${number(runs[0].jobs.length)} jobs, ${number(bars)} tasks, ${runs[0].isPool ? `${number(runs[0].total[0])} slots` : `${number(runs[0].nMachines)} machines`}, ${seconds(last - first)}.`;
    readColours();
    fit();
    document.querySelectorAll("canvas.gantt").forEach(listen);
    document.querySelector(".tools").addEventListener("submit", (event) => event.preventDefault());
    $("search").addEventListener("input", search);
    $("colour").addEventListener("change", () => { readColours(); redraw(); });
    const acts = { in: () => zoom(0.6), out: () => zoom(1 / 0.6), left: () => shift(-0.25 * (view.t1 - view.t0)),
      right: () => shift(0.25 * (view.t1 - view.t0)), fit, clear: () => choose(null) };
    document.querySelectorAll("[data-do]").forEach((button) => button.addEventListener("click", acts[button.dataset.do]));
    dark.addEventListener("change", () => { readColours(); redraw(); });
    new ResizeObserver(redraw).observe($("charts"));
    const wanted = new URLSearchParams(location.hash.slice(1)).get("job");
    if (wanted !== null && runs[0].jobs.includes(wanted)) choose(runs[0].jobs.indexOf(wanted), false);
    document.body.dataset.ready = "true";
  }

  start().catch((error) => { $("about").textContent = `This page could not be drawn: ${error.message}`; });
})();
