// A parameter: its name, a number that can be typed or slid, its unit, what it does, auto, kinds and reset.
let count = 0;

export default {
  template: `
    <div class="control" :data-name="control.name">
      <div class="line">
        <label :for="id">{{ control.label }} <i v-if="control.symbol">{{ control.symbol }}</i></label>
        <span class="grow"></span>
        <button v-if="control.automatic" type="button" class="chip" :aria-pressed="String(auto)" @click="toggleAuto"
                :title="auto ? 'Estimated' : 'Estimate this value'"
                :aria-label="control.label + ' automatic'">auto</button>
        <template v-if="control.kind === 'number'">
          <input :id="id" class="number" type="text" inputmode="decimal" :value="text" :aria-describedby="id + '-meaning'"
                 @change="typed" @keydown.enter="typed" />
          <span class="unit">{{ control.unit }}</span>
        </template>
        <select v-else-if="control.kind === 'choice'" :id="id" :value="String(value)" :aria-describedby="id + '-meaning'" @change="picked">
          <option v-for="choice in control.choices" :key="choice" :value="String(choice)">{{ choice }}{{ control.unit }}</option>
        </select>
        <input v-else :id="id" type="checkbox" class="switch" :checked="value" :aria-describedby="id + '-meaning'" @change="switched" />
        <button type="button" class="reset" :disabled="isDefault" @click="reset" :aria-label="'Reset ' + control.label"
                title="Reset"><svg viewBox="0 0 16 16" aria-hidden="true"><path d="M3 3v4h4M3.5 7a5 5 0 1 1-.3 3" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round"/></svg></button>
      </div>
      <input v-if="control.kind === 'number'" type="range" min="0" max="1000" :value="place" :aria-label="control.label + ' slider'"
             :aria-valuetext="text + ' ' + control.unit" :class="{ auto }" :style="{ '--share': place / 10 + '%' }" @input="slid" @change="let_go" />
      <p class="meaning" :id="id + '-meaning'">{{ sentence }}</p>
      <div v-if="control.kinds.length" class="line">
        <label :for="id + '-kind'">Kind</label>
        <span class="grow"></span>
        <select :id="id + '-kind'" :value="auto ? word : 'given'" :aria-label="'Kind of ' + control.label.toLowerCase()"
                title="The kind; the rest is estimated" @change="named">
          <option value="auto">auto</option>
          <option v-for="kind in control.kinds" :key="kind" :value="kind">{{ kind }}</option>
          <option value="given" disabled>{{ control.kinds[0] }}, as given</option>
        </select>
      </div>
    </div>`,
  props: { control: Object },
  emits: ["change"],
  data() { return { value: null, auto: false, word: "auto", moving: false }; },
  created() { this.id = `control-${(count += 1)}`; this.take(); },
  watch: { control: { deep: true, handler() { if (!this.moving) this.take(); } } },
  computed: {
    number() { return this.auto ? this.control.chosen : this.value; },
    text() { return this.number === null || this.number === undefined ? (this.auto ? "…" : "") : short(this.number); },
    place() { return this.number === null || this.number === undefined ? 0 : Math.round(1000 * share(this.number, this.control)); },
    isDefault() {
      if (this.control.kind === "choice") return this.value === this.control.default;
      return this.control.default === "auto" ? this.auto && this.word === "auto" : !this.auto && this.value === this.control.default;
    },
    sentence() { const words = this.control.meaning; return words.charAt(0).toUpperCase() + words.slice(1) + "."; },
  },
  methods: {
    take() {
      // In a list, auto is one of the values.
      const estimated = this.control.value === "auto" && this.control.kind !== "choice";
      this.auto = estimated || this.control.kinds.includes(this.control.value);
      this.word = this.auto ? this.control.value : "auto";
      this.value = this.auto ? this.control.chosen : this.control.value;
    },
    tell(value) { this.$emit("change", { value, stamp: performance.now() }); },
    slid(event) {
      this.moving = true;
      this.auto = false;
      this.value = Number(Number(valueAt(event.target.value / 1000, this.control)).toPrecision(3));
      this.tell(this.value);
    },
    let_go() { this.moving = false; },
    typed(event) {
      const number = Number(event.target.value.trim().replace(",", "."));
      if (event.target.value.trim() === "" || !Number.isFinite(number)) { event.target.value = this.text; return; }
      if (number === this.number) return;
      this.auto = false;
      this.value = number;
      this.tell(number);
    },
    picked(event) {
      this.value = this.control.choices.find((choice) => String(choice) === event.target.value);
      this.tell(this.value);
    },
    named(event) {
      this.auto = true;
      this.word = event.target.value;
      this.tell(this.word);
    },
    switched(event) { this.value = event.target.checked; this.tell(this.value); },
    toggleAuto() {
      if (!this.auto) { this.auto = true; this.word = "auto"; this.tell("auto"); return; }
      if (this.control.chosen === null || this.control.chosen === undefined) return;
      this.auto = false;
      this.value = Number(Number(this.control.chosen).toPrecision(3));
      this.tell(this.value);
    },
    reset() {
      this.auto = this.control.default === "auto" && this.control.kind !== "choice";
      this.word = "auto";
      this.value = this.auto ? this.control.chosen : this.control.default;
      this.tell(null);
    },
  },
};

function short(number) { return Number(Number(number).toPrecision(4)).toString(); }
function share(value, { low, high, scale }) {
  const inside = Math.min(Math.max(value, low), high);
  if (scale === "log") return Math.log(inside / low) / Math.log(high / low);
  const linear = (inside - low) / (high - low);
  return scale === "root" ? Math.sqrt(linear) : linear;
}
function valueAt(place, { low, high, scale }) {
  if (scale === "log") return low * Math.pow(high / low, place);
  return low + (high - low) * (scale === "root" ? place * place : place);
}
