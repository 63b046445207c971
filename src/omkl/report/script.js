"use strict";
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const narrow = matchMedia("(max-width: 40rem)");
  const tabs = [...document.querySelectorAll('[role="tab"]')];
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // The layout that all charts share: the colours of the page, and on narrow screens the legend below
  function layout(own) {
    const axis = { gridcolor: colour("--line"), zerolinecolor: colour("--line"), linecolor: colour("--line"), automargin: true };
    const base = {
      paper_bgcolor: colour("--back"), plot_bgcolor: colour("--back"), hovermode: "closest", autosize: true,
      font: { color: colour("--ink"), size: narrow.matches ? 11 : 13, family: "system-ui, sans-serif" },
      margin: narrow.matches ? { l: 48, r: 8, t: 36, b: 48 } : { l: 64, r: 16, t: 40, b: 56 },
      legend: narrow.matches ? { orientation: "h", y: -0.18, font: { size: 10 } } : { font: { size: 12 } },
      hoverlabel: { bgcolor: colour("--card"), font: { color: colour("--ink") }, bordercolor: colour("--line") },
    };
    const all = { ...base, ...own };
    all.xaxis = { ...axis, ...own.xaxis };
    all.yaxis = { ...axis, ...own.yaxis };
    return all;
  }

  function draw(kind) {
    const figure = document.getElementById("chart-" + kind);
    const select = document.querySelector(`select[data-charts="${kind}"]`);
    if (!figure || !charts[kind] || !charts[kind].length) return;
    const { chart } = charts[kind][select ? Number(select.value) : 0];
    figure.setAttribute("aria-label", chart.about);
    Plotly.react(figure, chart.data, layout(chart.layout), { responsive: true, displaylogo: false, displayModeBar: narrow.matches ? false : "hover" });
  }

  for (const select of document.querySelectorAll("select[data-charts]")) {
    const kind = select.dataset.charts;
    (charts[kind] || []).forEach(({ name }, i) => select.add(new Option(name, i)));
    if (select.length === 0 || (select.length === 1 && !tabs.length)) select.closest("label").hidden = true;
    select.addEventListener("change", () => draw(kind));
  }

  // Tabs: by click, by arrow keys, and by the fragment of the address
  function show(tab, focus) {
    for (const other of tabs) {
      const on = other === tab;
      other.setAttribute("aria-selected", on);
      other.tabIndex = on ? 0 : -1;
      document.getElementById(other.getAttribute("aria-controls")).hidden = !on;
    }
    if (focus) tab.focus();
    draw(tab.getAttribute("aria-controls"));
  }
  for (const tab of tabs) {
    tab.addEventListener("click", () => { show(tab, false); history.replaceState(null, "", "#" + tab.getAttribute("aria-controls")); });
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step && event.key !== "Home" && event.key !== "End") return;
      event.preventDefault();
      const at = event.key === "Home" ? 0 : event.key === "End" ? tabs.length - 1 : tabs.indexOf(tab) + step;
      show(tabs[(at + tabs.length) % tabs.length], true);
    });
  }
  const named = tabs.find((tab) => "#" + tab.getAttribute("aria-controls") === location.hash);
  if (named) show(named, false);

  // Tables: numbers by value, then text alphabetically, empty cells last
  const number = (text) => { const n = parseFloat(text.replace(/,/g, "")); return /^[-+]?[\d.]/.test(text) && !isNaN(n) ? n : null; };
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...table.tBodies[0].rows];
      const text = (row) => row.cells[column].textContent.trim();
      rows.sort((a, b) => {
        const [s, t] = [text(a), text(b)];
        if (!s || !t) return (s ? 0 : 1) - (t ? 0 : 1);
        const [x, y] = [number(s), number(t)];
        const order = x !== null && y !== null ? x - y : (x !== null ? -1 : y !== null ? 1 : s.localeCompare(t));
        return up ? order : -order;
      });
      table.tBodies[0].append(...rows);
    }));
  }

  // A page without tabs shows all charts
  const redraw = () => {
    if (tabs.length) draw(tabs.find((tab) => tab.tabIndex === 0).getAttribute("aria-controls"));
    else Object.keys(charts).forEach(draw);
  };
  if (!tabs.length) redraw();
  dark.addEventListener("change", redraw);
  narrow.addEventListener("change", redraw);
})();
