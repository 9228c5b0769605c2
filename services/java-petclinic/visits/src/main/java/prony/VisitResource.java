package prony;

import com.fasterxml.jackson.annotation.JsonPropertyOrder;
import jakarta.validation.Valid;
import jakarta.validation.constraints.Size;
import java.time.LocalDate;
import java.util.List;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;
import prony.common.Day;
import prony.common.Text;

/** Visits, written and read. Each call is one statement, in the repository's transaction. */
@RestController
class VisitResource {

    record VisitInput(@Day LocalDate date, @Text @Size(max = 8192) String description) {
    }

    @JsonPropertyOrder({"id", "petId", "date", "description"})
    record VisitView(int id, int petId, LocalDate date, String description) {

        static VisitView of(Visit visit) {
            return new VisitView(visit.id(), visit.petId(), visit.date(), visit.description());
        }
    }

    record Items(List<VisitView> items) {
    }

    private final Visits visits;

    VisitResource(Visits visits) {
        this.visits = visits;
    }

    // Whose pet it is, and whether there is such a pet, only customers could say.
    @PostMapping("/owners/{ownerId}/pets/{petId}/visits")
    @ResponseStatus(HttpStatus.CREATED)
    VisitView addVisit(
            @PathVariable int ownerId,
            @PathVariable int petId,
            @Valid @RequestBody VisitInput input) {
        return VisitView.of(visits.save(new Visit(petId, input.date(), input.description())));
    }

    @GetMapping("/pets/visits")
    Items visits(@RequestParam List<Integer> petId) {
        List<Visit> found = visits.findByPetIdInOrderById(petId);
        return new Items(found.stream().map(VisitView::of).toList());
    }
}
