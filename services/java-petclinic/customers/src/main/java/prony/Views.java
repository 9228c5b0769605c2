package prony;

import com.fasterxml.jackson.annotation.JsonPropertyOrder;
import jakarta.validation.constraints.Digits;
import jakarta.validation.constraints.NotBlank;
import jakarta.validation.constraints.NotNull;
import jakarta.validation.constraints.Size;
import java.time.LocalDate;
import java.util.List;

/** What goes over the wire. The order of keys is fixed, or answers could not be compared. */
final class Views {

    record OwnerInput(
            @NotBlank @Size(max = 30) String firstName,
            @NotBlank @Size(max = 30) String lastName,
            @NotBlank @Size(max = 255) String address,
            @NotBlank @Size(max = 80) String city,
            @NotBlank @Digits(integer = 12, fraction = 0) String telephone) {
    }

    record PetInput(
            @NotBlank @Size(max = 30) String name,
            @NotNull LocalDate birthDate,
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
