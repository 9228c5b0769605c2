package prony;

import com.fasterxml.jackson.annotation.JsonPropertyOrder;
import jakarta.validation.constraints.NotNull;
import jakarta.validation.constraints.Pattern;
import jakarta.validation.constraints.Size;
import java.time.LocalDate;
import java.util.List;
import prony.common.Day;
import prony.common.Text;

/** What goes over the wire. The order of keys is fixed, or answers could not be compared. */
final class Views {

    record OwnerInput(
            @Text @Size(max = 30) String firstName,
            @Text @Size(max = 30) String lastName,
            @Text @Size(max = 255) String address,
            @Text @Size(max = 80) String city,
            @NotNull @Pattern(regexp = "[0-9]{1,12}") String telephone) {
    }

    record PetInput(
            @Text @Size(max = 30) String name,
            @Day LocalDate birthDate,
            @NotNull Integer typeId) {
    }

    @JsonPropertyOrder({"id", "firstName", "lastName", "address", "city", "telephone", "pets"})
    record OwnerView(
            int id,
            String firstName,
            String lastName,
            String address,
            String city,
            String telephone,
            List<PetView> pets) {

        static OwnerView of(Owner owner) {
            return new OwnerView(
                    owner.id(),
                    owner.firstName(),
                    owner.lastName(),
                    owner.address(),
                    owner.city(),
                    owner.telephone(),
                    owner.pets().stream().map(PetView::of).toList());
        }
    }

    @JsonPropertyOrder({"id", "name", "birthDate", "type"})
    record PetView(int id, String name, LocalDate birthDate, TypeView type) {

        static PetView of(Pet pet) {
            TypeView type = new TypeView(pet.type().id(), pet.type().name());
            return new PetView(pet.id(), pet.name(), pet.birthDate(), type);
        }
    }

    @JsonPropertyOrder({"id", "name"})
    record TypeView(int id, String name) {
    }

    private Views() {
    }
}
