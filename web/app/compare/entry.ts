// Comparisons of published runs, for pages without a server: a script of its own, which only the
// page that compares loads.

import type { Sides } from "../source";
import { compare } from "./compare";
import type { Numbers } from "./numbers";

if (window.prony) {
  window.prony.compare = (a, b, sides: Sides) => compare(a as Numbers, b as Numbers, sides);
}
