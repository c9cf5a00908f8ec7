// A page that is opened from the disk may not start a worker, and the search is one. So the worker's script runs in a
// hidden frame instead. Where a server sends the page, the browser's own workers are used.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      this.waiting = [] // what is posted before the script has run
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inside = this.frame.contentWindow
      inside.postMessage = data => setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data })))
      inside.importScripts = () => Promise.reject(new Error("the search of this site has one language"))
      const script = inside.document.createElement("script")
      script.src = new URL(address, document.baseURI)
      script.onload = () => {
        const waiting = this.waiting
        this.waiting = null
        waiting.forEach(data => this.postMessage(data))
      }
      inside.document.body.appendChild(script)
      this.addEventListener("message", event => this.onmessage && this.onmessage(event))
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data)
      else setTimeout(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
