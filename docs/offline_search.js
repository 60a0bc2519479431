// SPDX-License-Identifier: Apache-2.0
// The search runs in a worker, which browsers refuse to pages that are read from disk. There, a hidden
// frame of the page stands in for it.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(script) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.ready = new Promise((done) => frame.addEventListener("load", () => done(frame.contentWindow)));
      window.fromSearch = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      frame.srcdoc =
        "<script>window.postMessage = (data) => parent.fromSearch(data);</" + "script>" +
        `<script src="${script}"></` + "script>";
      document.body.append(frame);
    }
    postMessage(data) {
      this.ready.then((frame) => frame.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
