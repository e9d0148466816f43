// Files from a dialog, or dropped anywhere on the page.
export default {
  template: `
    <span class="files">
      <input ref="input" id="open-file" type="file" class="hidden-input" aria-label="Open an image or a volume" :accept="accept" @change="chosen" />
      <label for="open-file" class="button"><svg viewBox="0 0 16 16" aria-hidden="true"><path d="M2 4.5V12a1 1 0 0 0 1 1h10a1 1 0 0 0 1-1V5.5a1 1 0 0 0-1-1H8L6.5 3H3a1 1 0 0 0-1 1.5z" fill="none" stroke="currentColor" stroke-width="1.3"/></svg>Open…</label>
      <div class="veil" v-show="over" aria-hidden="true"><div>Drop the file here</div></div>
      <span class="sending" v-show="sending" role="status">reading {{ sending }}…</span>
    </span>`,
  props: { url: String, limit: Number, accept: String },
  emits: ["too_large", "failed"],
  data() { return { over: false, sending: "" }; },
  mounted() {
    this.listeners = {
      dragover: (event) => { event.preventDefault(); this.over = [...event.dataTransfer.types].includes("Files"); },
      dragleave: (event) => { if (!event.relatedTarget) this.over = false; },
      drop: (event) => { event.preventDefault(); this.over = false; const [file] = event.dataTransfer.files; if (file) this.send(file); },
    };
    for (const [name, listener] of Object.entries(this.listeners)) window.addEventListener(name, listener);
  },
  unmounted() { for (const [name, listener] of Object.entries(this.listeners)) window.removeEventListener(name, listener); },
  methods: {
    chosen(event) { const [file] = event.target.files; if (file) this.send(file); event.target.value = ""; },
    async send(file) {
      if (file.size > this.limit) { this.$emit("too_large", { name: file.name, size: file.size }); return; }
      this.sending = file.name;
      try {
        await fetch(`${this.url}?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
      } catch (error) {
        this.$emit("failed", { name: file.name });
      }
      this.sending = "";
    },
  },
};
