/** Numbers as the page writes them: as many digits as they are worth. */

const NONE = "–";
const MINUS = "−";
/** A standard deviation that says no more than "anywhere", m. */
export const UNKNOWN_SD = 1;

function fixed(value: number, digits: number): string {
  return value.toFixed(digits).replace("-", MINUS);
}

/** Metres as millimetres with the digits that matter, no unit. */
export function millimetres(metres: number | null): string {
  if (metres === null || !Number.isFinite(metres)) return NONE;
  const mm = 1000 * metres;
  if (mm === 0) return "0";
  return fixed(mm, Math.abs(mm) < 0.0995 ? 3 : Math.abs(mm) < 9.95 ? 2 : Math.abs(mm) < 99.5 ? 1 : 0);
}

/** A round number of millimetres, such as the end of a scale. */
export function roundMillimetres(metres: number): string {
  return String(Number((1000 * metres).toPrecision(6)));
}

/** A length and its standard deviation, both in mm with the digits the second allows. */
export function lengthAndSd(length: number, sd: number | null): [string, string] {
  const mm = 1000 * length;
  if (sd === null || !Number.isFinite(sd)) return [fixed(mm, 1), ""];
  if (sd >= UNKNOWN_SD) return [fixed(mm, 1), "unsure"];
  const digits = 1000 * sd < 0.95 ? 2 : 1;
  return [fixed(mm, digits), `± ${fixed(1000 * sd, digits)}`];
}

export function whole(value: number): string {
  return fixed(value, 0);
}

/** A difference with its sign. */
export function signed(value: number): string {
  return (value < 0 ? MINUS : "+") + Math.abs(value).toFixed(1);
}

export function degrees(value: number): string {
  return Number.isFinite(value) ? fixed(value, 1) : NONE;
}

export function seconds(value: number): string {
  return fixed(value, value < 0.1 ? 3 : 2);
}

export function clock(value: number): string {
  const minutes = Math.floor(Math.abs(value) / 60);
  const rest = (Math.abs(value) - 60 * minutes).toFixed(3).padStart(6, "0");
  return `${value < 0 ? MINUS : ""}${minutes}:${rest}`;
}

export function percent(share: number | null): string {
  return share === null ? NONE : `${Math.round(100 * share)}`;
}

/** Text without control codes, which would not show or would mislead. */
export function plain(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}
