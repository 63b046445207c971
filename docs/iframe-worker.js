// Browsers start no worker for a page that was opened from a folder. The search runs in one, so there
// a hidden frame takes its place; pages from a server keep the real thing.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inside = frame.contentWindow;
      window.addEventListener("message", (event) => {
        if (event.source !== this.inside) return;
        const message = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      });
      const page = this.inside.document;
      const scripts = [
        "postMessage = (data) => parent.dispatchEvent(new MessageEvent('message', { data, source: window }));",
        "importScripts = (...urls) => Promise.all(urls.map((url) => new Promise((done) => {",
        "  const script = document.createElement('script');",
        "  script.src = url; script.onload = done; document.body.appendChild(script); })));",
      ].join("\n");
      this.ready = new Promise((done) => {
        page.open();
        page.write(`<body><script>${scripts}</script></body>`);
        page.close();
        const script = page.createElement("script");
        script.src = url;
        script.onload = done;
        page.body.appendChild(script);
      });
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })));
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };
}
