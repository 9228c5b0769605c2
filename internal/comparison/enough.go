package comparison

import (
	"fmt"
	"math"
)

// enoughMost is how many blocks are advised: more is another machine's work.
const enoughMost = 200

// Enough says with how many blocks, all of them, such a difference (0.05 is 5 %) would be told by
// the row that was asked for first, or the steadiest where none was, at the error rate and the
// power that Detectable has. Empty: it is seen already, or something was told, or nothing is known
// of the noise.
func (c Comparison) Enough(effect float64) string {
	var decides *Row
	for _, r := range c.each() {
		if r.Outcome == Better || r.Outcome == Worse {
			return ""
		}
		if r.HasRatio() && !math.IsNaN(r.Detectable) && (decides == nil || r.before(decides)) {
			decides = r
		}
	}
	if decides == nil || decides.Detectable <= effect {
		return ""
	}
	of := fmt.Sprintf("%.3g %%", 100*effect)
	n := decides.Ratio.Resolves(effect, (1-c.Confidence)*decides.share, power)
	if n > enoughMost {
		return fmt.Sprintf("no sensible number of blocks tells %s of %s at this noise; prony "+
			"doctor says what disturbs", of, decides.Name())
	}
	name := decides.Name() + " decides"
	if !decides.asked {
		name += ", the steadiest of these"
	}
	return fmt.Sprintf("%s: %d blocks would tell %s of it (--blocks %d, or --for and a time)", name,
		n, of, n)
}

// before tells whether a row decides rather than another.
func (r *Row) before(other *Row) bool {
	if r.asked != other.asked {
		return r.asked
	}
	return r.Detectable < other.Detectable
}
