// Before and after on one canvas: divider, zoom and pan for both at once, brush, ellipses, and the film.
const ZOOM_LIMIT = 64;

export default {
  template: `
    <section class="viewer" :class="{ painting: brush }" aria-label="Pictures" :aria-busy="String(waiting > 0)">
      <div class="stage" ref="stage" tabindex="0" role="group"
           aria-label="Before and after. Arrow keys move the divider, plus and minus zoom, 0 fits, F flickers, D shows the difference."
           @wheel.prevent="wheel" @pointerdown="down" @pointermove="move" @pointerup="up" @pointercancel="up"
           @pointerleave="leave" @dblclick="fit" @keydown="key">
        <canvas ref="canvas"></canvas>
        <div v-show="mode === 'compare' && ready" class="divider" ref="divider" role="slider" tabindex="0"
             aria-label="Divider between before and after" aria-valuemin="0" aria-valuemax="100"
             :aria-valuenow="Math.round(100 * split)" :style="{ left: 100 * split + '%' }"
             @pointerdown.stop="grab" @keydown.stop="dividerKey"><span></span></div>
        <div class="tag before" v-show="ready && showsBefore">{{ swapped ? afterTag : "before" }}</div>
        <div class="tag after" v-show="ready && showsAfter">{{ swapped ? "before" : afterTag }}</div>
        <div class="readout" role="status">{{ readout }}</div>
      </div>
      <div class="film" v-show="ready">
        <button type="button" class="round" :aria-label="playing ? 'Pause' : 'Play the scale space'"
                :title="playing ? 'Pause' : 'Play the scale space'" :disabled="!playable" @click="play">
          <svg viewBox="0 0 20 20" aria-hidden="true"><path :d="playing ? 'M5 4h3.5v12H5zM11.5 4H15v12h-3.5z' : 'M6 4l10 6-10 6z'"/></svg>
        </button>
        <input type="range" min="0" max="1000" :value="Math.round(1000 * filmPlace)" :disabled="!playable"
               aria-label="Time in the scale space" :aria-valuetext="filmWords" @input="scrub" />
        <output>{{ filmWords }}</output>
        <button type="button" class="plain" v-show="filmTime !== null && filmEnd !== null" @click="useTime">Use this time</button>
        <button type="button" class="plain" v-show="filmTime !== null" @click="endFilm">Back to the result</button>
      </div>
      <div class="progress" :class="{ quiet: progress === null }" aria-hidden="true"><div :style="{ width: 100 * (progress || 0) + '%' }"></div></div>
      <div class="status" role="status"><span>{{ aboutScene }}</span><span>{{ aboutResult }}</span></div>
    </section>`,
  props: { mode: String, brush: Boolean, radius: Number, erase: Boolean, playable: Boolean, ellipsesShown: Boolean,
           stoppedShown: Boolean },
  emits: ["view", "stroke", "film", "use_time", "difference"],
  data() {
    return { split: 0.5, flipped: false, ready: false, readout: "", playing: false, filmPlace: 1, filmTime: null,
             filmEnd: null, full: null, aboutScene: "Open an image, drop one here, or choose a sample.", aboutResult: "",
             progress: null, waiting: 0 };
  },
  computed: {
    swapped() { return this.mode === "compare" && this.flipped; },
    showsBefore() { return this.mode === "compare" || this.flipped; },
    showsAfter() { return this.mode === "compare" || !this.flipped; },
    afterTag() {
      // Frames of the film are images in all modes.
      if (this.filmTime !== null && this.filmEnd !== null) return `t = ${digits(this.filmTime)}`;
      if (this.mode !== "difference") return "after";
      return this.full === null ? "difference" : `difference, white is +${digits(this.full)}`;
    },
    filmWords() {
      if (!this.playable) return "no scale space";
      if (this.filmEnd === null) return this.filmTime === null ? "scale space" : "computing…";
      return `t = ${digits(this.filmTime ?? this.filmEnd)}` + (this.filmTime === null ? "" : ` of ${digits(this.filmEnd)}`);
    },
  },
  watch: {
    mode() { this.flipped = false; this.draw(); },
    brush() { this.draw(); }, radius() { this.draw(); },
    ellipsesShown() { this.draw(); }, stoppedShown() { this.draw(); },
  },
  created() {
    // Not reactive: pictures and places are drawn, not rendered.
    this.layers = {}; this.newest = 0; this.oldest = 0; this.film = 0; this.frames = []; this.ellipses = []; this.spot = 1;
    this.size = { width: 1, height: 1 }; this.place = { x: 0, y: 0, scale: 1 }; this.fitted = true;
    this.pointers = new Map(); this.stroke = []; this.unsent = []; this.cursor = null;
  },
  mounted() {
    this.observer = new ResizeObserver(() => this.resized());
    this.observer.observe(this.$refs.stage);
    this.globalKey = (event) => this.flicker(event);
    window.addEventListener("keydown", this.globalKey);
    window.addEventListener("keyup", this.globalKey);
    this.blurred = () => { this.flipped = false; this.draw(); }; // the key is released elsewhere
    window.addEventListener("blur", this.blurred);
  },
  unmounted() {
    this.observer.disconnect();
    window.removeEventListener("keydown", this.globalKey);
    window.removeEventListener("keyup", this.globalKey);
    window.removeEventListener("blur", this.blurred);
    clearInterval(this.clock);
  },
  methods: {
    // -- from the server --------------------------------------------------------------------------
    // In here and not in elements of the page, all of which would be rendered again at each picture.
    say(news) { Object.assign(this, news); },
    look(width, height, keep) {
      this.size = { width, height };
      if (!keep) this.layers = {};
      for (const slot of Object.keys(this.layers)) if (!["before", "after"].includes(slot)) delete this.layers[slot];
      this.oldest = this.newest; this.ellipses = []; this.stroke = []; this.full = null;
      this.dropFilm();
      if (!keep) this.fit();
      this.ready = true;
      this.draw();
    },
    async show(slot, number, url, rectangle, facts) {
      const film = this.film;
      this.newest = Math.max(this.newest, number);
      // Now, not when the picture has arrived: by then there may be other news.
      if (facts.preview) {
        const coarser = facts.factor > 1 ? `, ${facts.factor} × coarser` : "";
        this.aboutResult = `preview${facts.words} in ${Math.round(1000 * facts.seconds)} ms${coarser}`;
      }
      let bitmap;
      this.waiting += 1;
      try {
        const answer = await fetch(url);
        if (answer.status !== 200) return; // newer pictures have taken its place
        bitmap = await createImageBitmap(await answer.blob());
      } catch { return; } // the tab is being closed
      finally { this.waiting -= 1; }
      if (number <= this.oldest) return; // it shows what is no longer looked at
      const layer = { bitmap, rectangle, number };
      if (slot.startsWith("frame")) { if (film === this.film) this.addFrame(layer, facts); return; }
      const newer = (other) => this.layers[other]?.number > number; // pictures may arrive in another order
      if (newer(slot) || (slot === "after-detail" && newer("after"))) return;
      this.layers[slot] = layer;
      if (slot === "after" && !newer("after-detail")) delete this.layers["after-detail"];
      if (slot.startsWith("after")) this.full = facts.full ?? null;
      if (slot === "unknown") this.stroke = this.unsent.slice();
      this.draw();
      if (slot.startsWith("after")) requestAnimationFrame(() => this.drawn(facts));
    },
    drop(slots) { for (const slot of slots) delete this.layers[slot]; this.draw(); },
    setEllipses(ellipses, spot) { this.ellipses = ellipses; this.spot = spot; this.draw(); },
    dropFilm() {
      clearInterval(this.clock); this.playing = false; this.frames = []; this.filmRequested = false; this.film += 1;
      this.filmTime = null; this.filmEnd = null; this.filmPlace = 1;
    },
    drawn(facts) {
      const latency = facts.stamp == null ? null : performance.now() - facts.stamp;
      window.dispatchEvent(new CustomEvent("aniso:drawn", { detail: { ...facts, latency } }));
    },
    // -- drawing ----------------------------------------------------------------------------------
    resized() {
      const { canvas, stage } = this.$refs, ratio = window.devicePixelRatio || 1;
      canvas.width = Math.max(1, Math.round(stage.clientWidth * ratio));
      canvas.height = Math.max(1, Math.round(stage.clientHeight * ratio));
      this.ratio = ratio;
      if (this.fitted) this.fit(); else this.draw();
    },
    fit() {
      const { canvas } = this.$refs, margin = 12 * (this.ratio || 1);
      const scale = Math.min((canvas.width - 2 * margin) / this.size.width, (canvas.height - 2 * margin) / this.size.height);
      this.place = { scale: Math.max(scale, 1e-3), x: 0, y: 0 };
      this.place.x = (canvas.width - this.place.scale * this.size.width) / 2;
      this.place.y = (canvas.height - this.place.scale * this.size.height) / 2;
      this.fitted = true;
      this.moved();
    },
    draw() {
      if (this.pending) return;
      this.pending = requestAnimationFrame(() => { this.pending = null; this.paint(); });
    },
    paint() {
      const { canvas } = this.$refs;
      if (!canvas) return;
      const pen = canvas.getContext("2d"), { width, height } = canvas;
      pen.setTransform(1, 0, 0, 1, 0, 0);
      pen.clearRect(0, 0, width, height);
      if (!this.ready) return;
      const cut = this.split * width;
      const left = this.flipped ? "after" : "before", right = this.flipped ? "before" : "after";
      if (this.mode === "compare") {
        this.paintSide(pen, left, 0, cut);
        this.paintSide(pen, right, cut, width);
      } else {
        this.paintSide(pen, this.flipped ? "before" : "after", 0, width);
      }
      if (this.ellipsesShown) this.paintEllipses(pen);
      this.paintBrush(pen);
    },
    paintSide(pen, side, from, to) {
      const { x, y, scale } = this.place;
      pen.save();
      pen.beginPath(); pen.rect(from, 0, to - from, this.$refs.canvas.height); pen.clip();
      pen.beginPath(); pen.rect(x, y, scale * this.size.width, scale * this.size.height); pen.clip();
      const frame = side === "after" && this.filmTime !== null ? this.currentFrame() : null;
      const shown = frame ? [frame] : [this.layers[side] || this.layers.before, this.layers[side + "-detail"]];
      for (const layer of shown) this.paintLayer(pen, layer);
      if (side === "before" && this.layers.unknown) this.paintLayer(pen, this.layers.unknown);
      if (side === "after" && this.stoppedShown) this.paintLayer(pen, this.layers.stopped);
      pen.restore();
    },
    paintLayer(pen, layer) {
      if (!layer) return;
      const { x, y, scale } = this.place, [left, top, right, bottom] = layer.rectangle;
      const wide = scale * (right - left), high = scale * (bottom - top);
      const magnified = wide / layer.bitmap.width;
      // A pixel that fills several ones of the screen is shown as a square, unless it stands for several itself.
      pen.imageSmoothingEnabled = magnified < 3 || layer.bitmap.width < 0.9 * (right - left);
      pen.imageSmoothingQuality = magnified < 0.8 ? "high" : "low"; // enlarged, it makes no difference but time
      pen.drawImage(layer.bitmap, x + scale * left, y + scale * top, wide, high);
    },
    paintEllipses(pen) {
      const { x, y, scale } = this.place, reach = 0.46 * this.spot * scale;
      if (!this.ellipses.length) return;
      pen.save();
      pen.beginPath(); pen.rect(x, y, scale * this.size.width, scale * this.size.height); pen.clip();
      const path = new Path2D();
      for (const [column, row, long, short, angle] of this.ellipses) {
        const one = new Path2D();
        one.ellipse(x + scale * column, y + scale * row, Math.max(reach * long, 0.5), Math.max(reach * short, 0.5), angle, 0, 2 * Math.PI);
        path.addPath(one);
      }
      pen.lineWidth = 3 * this.ratio; pen.strokeStyle = "rgba(0, 0, 0, 0.55)"; pen.stroke(path);
      pen.lineWidth = 1.3 * this.ratio; pen.strokeStyle = "#ffd166"; pen.stroke(path);
      pen.restore();
    },
    paintBrush(pen) {
      if (!this.brush) return;
      const { x, y, scale } = this.place;
      if (this.stroke.length) {
        pen.save();
        pen.strokeStyle = this.erase ? "rgba(255, 255, 255, 0.6)" : "rgba(58, 132, 255, 0.75)";
        pen.lineWidth = 2 * this.radius * scale; pen.lineCap = pen.lineJoin = "round";
        pen.beginPath();
        for (const [column, row, begins] of this.stroke) {
          const px = x + scale * column, py = y + scale * row;
          if (begins) pen.moveTo(px, py);
          pen.lineTo(px, py + 0.01);
        }
        pen.stroke();
        pen.restore();
      }
      if (this.cursor) {
        pen.beginPath();
        pen.arc(x + scale * this.cursor[0], y + scale * this.cursor[1], Math.max(2, this.radius * scale), 0, 2 * Math.PI);
        pen.lineWidth = 3 * this.ratio; pen.strokeStyle = "rgba(0, 0, 0, 0.5)"; pen.stroke();
        pen.lineWidth = 1.5 * this.ratio; pen.strokeStyle = "white"; pen.stroke();
      }
    },
    // -- hands ------------------------------------------------------------------------------------
    at(event) {
      const box = this.$refs.stage.getBoundingClientRect(), { x, y, scale } = this.place;
      const px = (event.clientX - box.left) * this.ratio, py = (event.clientY - box.top) * this.ratio;
      return { px, py, column: (px - x) / scale, row: (py - y) / scale };
    },
    zoom(factor, px, py) {
      const { canvas } = this.$refs, old = this.place.scale;
      px = px ?? canvas.width / 2; py = py ?? canvas.height / 2;
      const least = 0.5 * Math.min(canvas.width / this.size.width, canvas.height / this.size.height);
      const scale = Math.min(Math.max(old * factor, least), ZOOM_LIMIT * this.ratio);
      this.place = { scale, x: px - (px - this.place.x) * (scale / old), y: py - (py - this.place.y) * (scale / old) };
      this.fitted = false;
      this.moved();
    },
    pan(dx, dy) {
      this.place = { ...this.place, x: this.place.x + dx, y: this.place.y + dy };
      this.fitted = false;
      this.moved();
    },
    moved() {
      this.draw();
      clearTimeout(this.viewTimer);
      this.viewTimer = setTimeout(() => {
        const { canvas } = this.$refs, { x, y, scale } = this.place;
        if (!canvas || !this.ready) return;
        this.$emit("view", { left: Math.max(0, -x / scale), top: Math.max(0, -y / scale),
          right: Math.min(this.size.width, (canvas.width - x) / scale),
          bottom: Math.min(this.size.height, (canvas.height - y) / scale), scale });
      }, 120);
    },
    wheel(event) { const { px, py } = this.at(event); this.zoom(Math.exp(-event.deltaY * 0.0015), px, py); },
    down(event) {
      if (event.button > 1) return;
      this.$refs.stage.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
      this.dragging = null;
      if (this.brush && event.button === 0 && this.pointers.size === 1) {
        this.dragging = "brush";
        const { column, row } = this.at(event);
        this.addPoint(column, row, true);
      }
    },
    move(event) {
      const { column, row } = this.at(event);
      this.cursor = [column, row];
      const inside = column >= 0 && row >= 0 && column < this.size.width && row < this.size.height;
      this.readout = inside ? `${Math.floor(column)}, ${Math.floor(row)} · ${Math.round(100 * this.place.scale / this.ratio)} %` : "";
      if (this.brush) this.draw();
      const before = this.pointers.get(event.pointerId);
      if (!before) return;
      const now = [event.clientX, event.clientY];
      if (this.dragging === "divider") {
        const box = this.$refs.stage.getBoundingClientRect();
        this.setSplit((event.clientX - box.left) / box.width);
      } else if (this.dragging === "brush") {
        this.addPoint(column, row, false);
      } else if (this.pointers.size === 2) {
        const [other] = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
        const distance = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]) || 1;
        const { px, py } = this.at({ clientX: (now[0] + other[0]) / 2, clientY: (now[1] + other[1]) / 2 });
        this.zoom(distance(now, other) / distance(before, other), px, py);
      } else {
        this.pan((now[0] - before[0]) * this.ratio, (now[1] - before[1]) * this.ratio);
      }
      this.pointers.set(event.pointerId, now);
    },
    up(event) {
      this.pointers.delete(event.pointerId);
      if (this.dragging === "brush") this.sendStroke();
      this.dragging = null;
    },
    leave() { this.readout = ""; this.cursor = null; this.draw(); },
    grab(event) {
      this.$refs.stage.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
      this.dragging = "divider";
    },
    setSplit(share) { this.split = Math.min(Math.max(share, 0), 1); this.draw(); },
    dividerKey(event) {
      const steps = { ArrowLeft: -0.02, ArrowRight: 0.02, PageDown: -0.1, PageUp: 0.1, Home: -1, End: 1 };
      if (!(event.key in steps)) { this.key(event); return; }
      event.preventDefault();
      this.setSplit(this.split + steps[event.key]);
    },
    key(event) {
      const far = 40 * this.ratio, pans = { ArrowLeft: [far, 0], ArrowRight: [-far, 0], ArrowUp: [0, far], ArrowDown: [0, -far] };
      if (event.key in pans) {
        event.preventDefault();
        if (event.shiftKey || event.key === "ArrowUp" || event.key === "ArrowDown") this.pan(...pans[event.key]);
        else if (this.mode === "compare") this.setSplit(this.split + (event.key === "ArrowLeft" ? -0.02 : 0.02));
      } else if (event.key === "+" || event.key === "=") this.zoom(1.25);
      else if (event.key === "-") this.zoom(0.8);
      else if (event.key === "0") this.fit();
      else if (event.key === "1") this.zoom(this.ratio / this.place.scale);
    },
    flicker(event) {
      if (event.ctrlKey || event.metaKey || event.altKey || isText(event.target)) return;
      const key = event.key.toLowerCase();
      if (key === "f" && !event.repeat) { this.flipped = event.type === "keydown"; this.draw(); }
      if (key === "d" && event.type === "keydown" && !event.repeat) this.$emit("difference");
    },
    // -- brush ------------------------------------------------------------------------------------
    addPoint(column, row, begins) {
      this.stroke.push([column, row, begins]);
      this.unsent.push([column, row, begins]);
      this.draw();
      if (!this.strokeTimer) this.strokeTimer = setTimeout(() => this.sendStroke(), 70);
    },
    sendStroke() {
      clearTimeout(this.strokeTimer);
      this.strokeTimer = null;
      if (!this.unsent.length) return;
      const points = this.unsent.map(([column, row]) => [column, row]);
      // The next part of the stroke goes on where this one ends.
      this.unsent = this.dragging === "brush" ? [this.unsent.at(-1)] : [];
      if (points.length > 1 || !this.sentOne) this.$emit("stroke", { points, radius: this.radius, erase: this.erase });
      this.sentOne = this.dragging === "brush";
    },
    // -- film -------------------------------------------------------------------------------------
    addFrame(layer, facts) {
      this.frames[facts.number] = { ...layer, time: facts.time };
      this.frameCount = facts.count;
      this.filmEnd = facts.end;
      if (this.filmTime !== null) this.scrubTo(this.filmPlace);
    },
    requestFilm() { if (!this.filmRequested) { this.filmRequested = true; this.$emit("film"); } },
    currentFrame() {
      const known = this.frames.filter(Boolean);
      if (!known.length) return null;
      const wanted = Math.round(this.filmPlace * ((this.frameCount || 1) - 1));
      return this.frames[wanted] || known.at(-1);
    },
    scrub(event) { this.playing = false; clearInterval(this.clock); this.requestFilm(); this.scrubTo(event.target.value / 1000); },
    scrubTo(place) {
      this.filmPlace = place;
      this.filmTime = this.currentFrame()?.time ?? 0;
      this.draw();
    },
    play() {
      this.playing = !this.playing;
      clearInterval(this.clock);
      if (!this.playing) return;
      this.requestFilm();
      if (this.filmTime === null || this.filmPlace >= 1) this.scrubTo(0);
      this.clock = setInterval(() => {
        if (!this.frames[0]) return; // still being computed
        const last = this.frameCount - 1, next = Math.round(this.filmPlace * last) + 1;
        if (next <= last && !this.frames[next]) return; // frames may arrive in another order
        this.scrubTo(Math.min(next / last, 1));
        if (next >= last) { clearInterval(this.clock); this.playing = false; }
      }, 90);
    },
    useTime() { const time = this.filmTime; this.$emit("use_time", { time }); this.endFilm(); },
    endFilm() { clearInterval(this.clock); this.playing = false; this.filmTime = null; this.filmPlace = 1; this.draw(); },
  },
};

function digits(value) { return Number(Number(value).toPrecision(3)).toString(); }
function isText(target) {
  return target && (target.isContentEditable || target.tagName === "TEXTAREA" || target.tagName === "SELECT" ||
    (target.tagName === "INPUT" && !["range", "checkbox", "button"].includes(target.type)));
}
