package prony;

import com.fasterxml.jackson.annotation.JsonPropertyOrder;
import java.util.List;
import java.util.stream.Collectors;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.publisher.Mono;

/** An owner, from customers, with the pets' visits, from visits: one request becomes three. */
@RestController
class OwnerDetails {

    // Dates pass through as they are, for nothing here reckons with them.
    @JsonPropertyOrder({"id", "petId", "date", "description"})
    record Visit(int id, int petId, String date, String description) {
    }

    record Visits(List<Visit> items) {

        List<Visit> of(int petId) {
            return items.stream().filter(visit -> visit.petId() == petId).toList();
        }
    }

    @JsonPropertyOrder({"id", "name"})
    record Type(int id, String name) {
    }

    @JsonPropertyOrder({"id", "name", "birthDate", "type", "visits"})
    record Pet(int id, String name, String birthDate, Type type, List<Visit> visits) {

        Pet with(Visits all) {
            return new Pet(id, name, birthDate, type, all.of(id));
        }
    }

    @JsonPropertyOrder({"id", "firstName", "lastName", "address", "city", "telephone", "pets"})
    record Owner(
            int id,
            String firstName,
            String lastName,
            String address,
            String city,
            String telephone,
            List<Pet> pets) {

        Owner with(Visits all) {
            List<Pet> visited = pets.stream().map(pet -> pet.with(all)).toList();
            return new Owner(id, firstName, lastName, address, city, telephone, visited);
        }

        String petIds() {
            return pets.stream().map(pet -> Integer.toString(pet.id()))
                    .collect(Collectors.joining(","));
        }
    }

    private final WebClient client;

    OwnerDetails(WebClient client) {
        this.client = client;
    }

    @GetMapping("/api/gateway/owners/{id}")
    Mono<Owner> owner(@PathVariable int id) {
        return client.get().uri("http://customers/owners/{id}", id)
                .retrieve().bodyToMono(Owner.class)
                .flatMap(owner -> visits(owner).map(owner::with));
    }

    private Mono<Visits> visits(Owner owner) {
        return client.get().uri("http://visits/pets/visits?petId={ids}", owner.petIds())
                .retrieve().bodyToMono(Visits.class);
    }
}
