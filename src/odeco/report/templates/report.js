"use strict";
(() => {
  const page = document.documentElement;
  page.classList.add("script");
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);

  // Details that are closed would not be printed.
  let opened = [];
  addEventListener("beforeprint", () => { opened = all("details:not([open])"); opened.forEach((d) => { d.open = true; }); });
  addEventListener("afterprint", () => opened.forEach((d) => { d.open = false; }));

  const filter = byId("filter");
  const found = byId("found");

  function filterRows() {
    const rows = all(".filtered tbody tr");
    const asked = filter.value.trim().toLocaleLowerCase();
    let shown = 0;
    for (const row of rows) {
      row.hidden = !row.dataset.name.toLocaleLowerCase().includes(asked);
      shown += row.hidden ? 0 : 1;
    }
    found.textContent = asked ? `${shown} of ${rows.length} annotators` : "";
  }

  const holder = byId("report-data");
  if (!holder) {
    if (filter) filter.addEventListener("input", filterRows);
    return;
  }

  // Topics.
  const data = JSON.parse(holder.textContent);
  const articles = all("article.topic");
  const rows = all(".topic-list tbody tr");
  const nodes = all(".map .node");
  const slider = byId("relevance");
  const panel = byId("panel");
  const count = articles.length;
  let chosen = -1;

  const share = (p) => {
    if (p < 1e-5) return "<0.001%";
    return p < 0.1 ? `${Number((100 * p).toPrecision(2))}%` : `${(100 * p).toFixed(0)}%`;
  };
  const lift = (x) => `×${x >= 100 ? Math.round(x).toLocaleString("en") : Number(x.toPrecision(3))}`;

  function element(name, text, className) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  function bar(name, value) {
    const made = element(name);
    made.style.width = `${(100 * Math.min(value, 1)).toFixed(1)}%`;
    return made;
  }

  // An interval over a bar.
  function whisker(ends, largest) {
    const made = element("u");
    const [left, right] = ends.map((end) => 100 * Math.min(end / largest, 1));
    made.style.left = `${left.toFixed(1)}%`;
    made.style.width = `${(right - left).toFixed(1)}%`;
    return made;
  }

  // The most relevant words of a topic: weight * log p + (1 - weight) * log(p / overall).
  function ranking(topic, weight) {
    const [words, shares, lows, highs] = data.topics[topic];
    return words
      .map((word, i) => {
        const here = shares[i];
        const overall = data.overall[word];
        const ends = lows ? [lows[i], highs[i]] : null;
        return { word, here, overall, ends, score: Math.log(here) - (1 - weight) * Math.log(overall) };
      })
      .sort((a, b) => b.score - a.score || a.word - b.word)
      .slice(0, data.show);
  }

  function drawWords() {
    const weight = Number(slider.value);
    const best = ranking(chosen, weight);
    const largest = Math.max(...best.map((item) => (item.ends ? item.ends[1] : item.here)), 1e-300);
    const body = articles[chosen].querySelector(".words tbody");
    body.replaceChildren(
      ...best.map((item) => {
        const row = element("tr");
        const head = element("th", data.words[item.word]);
        head.scope = "row";
        const bars = element("td", undefined, "two");
        bars.append(bar("i", item.here / largest));
        row.append(head, bars, element("td", share(item.here), "number"));
        if (item.ends) {
          bars.append(whisker(item.ends, largest));
          row.append(element("td", `${share(item.ends[0]).replace("%", "")}–${share(item.ends[1])}`, "number sure"));
        }
        bars.append(bar("s", item.overall / largest));
        row.append(element("td", lift(item.here / item.overall), "number lift"));
        return row;
      }),
    );
    byId("lambda").textContent = String(weight);
    articles[chosen].querySelector(".lambda").textContent = String(weight);
  }

  function choose(topic, { move = false } = {}) {
    chosen = topic;
    for (const [i, article] of articles.entries()) article.classList.toggle("chosen", i === topic);
    for (const row of rows) row.classList.toggle("chosen", Number(row.dataset.topic) === topic);
    for (const node of nodes) {
      const mine = Number(node.dataset.topic) === topic;
      node.classList.toggle("chosen", mine);
      if (mine) node.setAttribute("aria-current", "true");
      else node.removeAttribute("aria-current");
    }
    drawWords();
    panel.scrollTop = 0;
    if (!move) return;
    history.replaceState(null, "", `#topic-${topic}`);
    articles[topic].focus({ preventScroll: true });
    const box = panel.getBoundingClientRect();
    if (box.top < 0 || box.top > innerHeight * 0.7) panel.scrollIntoView({ block: "start" });
  }

  // Names that readers give to topics are theirs: kept in this browser alone, where it lets a file keep anything.
  const key = `odeco-names ${document.title} ${data.words.length}`;
  const names = (() => {
    try { return JSON.parse(localStorage.getItem(key)) || {}; } catch { return {}; }
  })();
  function showName(topic) {
    const name = names[topic] || "";
    articles[topic].querySelector(".heading").textContent = name || `Topic ${topic}`;
    const row = rows.find((each) => Number(each.dataset.topic) === topic);
    row.querySelector(".given-name").textContent = name;
  }
  for (const [topic, article] of articles.entries()) {
    const input = article.querySelector(".rename input");
    input.value = names[topic] || "";
    showName(topic);
    input.addEventListener("input", () => {
      names[topic] = input.value.trim();
      showName(topic);
      try { localStorage.setItem(key, JSON.stringify(names)); } catch { /* shown until the page is closed */ }
    });
  }

  // Cells that a spreadsheet would take for a formula are text, and quotes are doubled.
  const cell = (value) => `"${String(value).replace(/^[=+\-@\t]/, "'$&").replaceAll('"', '""')}"`;
  byId("download").addEventListener("click", () => {
    const lines = [["topic", "name", "rank", "word", "probability", "overall"].join(",")];
    for (let topic = 0; topic < count; topic += 1) {
      for (const [rank, item] of ranking(topic, Number(slider.value)).entries()) {
        lines.push([topic, cell(names[topic] || ""), rank + 1, cell(data.words[item.word]), item.here, item.overall].join(","));
      }
    }
    const link = element("a");
    link.href = URL.createObjectURL(new Blob([`\ufeff${lines.join("\r\n")}\r\n`], { type: "text/csv" }));
    link.download = "topics.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });

  const topicOf = (target) => {
    const holderOf = target.closest("[data-topic]");
    return holderOf && !holderOf.matches("article") ? Number(holderOf.dataset.topic) : -1;
  };

  byId("topics").addEventListener("click", (event) => {
    const topic = topicOf(event.target);
    if (topic < 0 || event.target.closest(".rename")) return;
    event.preventDefault();
    choose(topic, { move: true });
  });

  slider.addEventListener("input", drawWords);
  const shift = (by) => choose((chosen + by + count) % count, { move: true });
  byId("previous").addEventListener("click", () => shift(-1));
  byId("next").addEventListener("click", () => shift(1));

  // A topic is found by the words that any position of the slider shows and that it uses more than others do.
  const texts = data.topics.map(([words, shares]) =>
    words.filter((word, i) => shares[i] > data.overall[word]).map((word) => data.words[word].toLocaleLowerCase()),
  );
  filter.addEventListener("input", () => {
    const asked = filter.value.trim().toLocaleLowerCase();
    const matches = (i) => !asked || String(i) === asked || texts[i].some((word) => word.startsWith(asked));
    let shown = 0;
    for (const row of rows) {
      row.hidden = !matches(Number(row.dataset.topic));
      shown += row.hidden ? 0 : 1;
    }
    for (const node of nodes) node.classList.toggle("unmatched", !matches(Number(node.dataset.topic)));
    found.textContent = asked ? `${shown} of ${count} topics` : "";
  });

  const asked = /^#topic-(\d+)$/.exec(location.hash);
  choose(asked && Number(asked[1]) < count ? Number(asked[1]) : 0);
})();
