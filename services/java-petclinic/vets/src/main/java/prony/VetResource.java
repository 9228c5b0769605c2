package prony;

import com.fasterxml.jackson.annotation.JsonPropertyOrder;
import java.util.List;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/**
 * All vets, by 1 + 6 statements: one for the vets, then one for the specialties of each. That is
 * the pet clinic's own habit, and what makes this request the one with most queries, so that it is
 * kept on purpose: neither a join nor a cache shortens it.
 */
@RestController
class VetResource {

    @JsonPropertyOrder({"id", "firstName", "lastName", "specialties"})
    record VetView(int id, String firstName, String lastName, List<SpecialtyView> specialties) {

        static VetView of(Vet vet) {
            return new VetView(
                    vet.id(),
                    vet.firstName(),
                    vet.lastName(),
                    vet.specialties().stream().map(SpecialtyView::of).toList());
        }
    }

    @JsonPropertyOrder({"id", "name"})
    record SpecialtyView(int id, String name) {

        static SpecialtyView of(Specialty specialty) {
            return new SpecialtyView(specialty.id(), specialty.name());
        }
    }

    private final Vets vets;

    VetResource(Vets vets) {
        this.vets = vets;
    }

    @GetMapping("/vets")
    List<VetView> vets() {
        return vets.findAllByOrderById().stream().map(VetView::of).toList();
    }
}
