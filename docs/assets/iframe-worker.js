// Search of the docs runs in a worker, and browsers start none from the file system. There, a hidden frame takes its place.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...all) => Promise.all(all.map((one) => this.load(one)));
      this.ready = this.load(address);
    }

    load(address) {
      const page = this.frame.contentWindow.document;
      const script = page.createElement("script");
      script.src = new URL(address, location.href);
      return new Promise((done, failed) => {
        script.onload = done;
        script.onerror = failed;
        page.body.appendChild(script);
      });
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
