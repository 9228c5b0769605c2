package prony;

import java.util.List;
import java.util.Optional;
import org.springframework.http.HttpStatus;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.web.server.ResponseStatusException;
import prony.Views.OwnerInput;
import prony.Views.OwnerView;
import prony.Views.PetInput;
import prony.Views.PetView;

/** Owners and pets, each call in a transaction of its own. */
@Service
@Transactional
class CustomerService {

    private final Owners owners;
    private final Pets pets;
    private final PetTypes types;

    CustomerService(Owners owners, Pets pets, PetTypes types) {
        this.owners = owners;
        this.pets = pets;
        this.types = types;
    }

    @Transactional(readOnly = true)
    public List<OwnerView> owners() {
        return owners.findAllWithPets().stream().map(OwnerView::of).toList();
    }

    @Transactional(readOnly = true)
    public OwnerView owner(int id) {
        return OwnerView.of(found(owners.findById(id)));
    }

    public OwnerView addOwner(OwnerInput input) {
        Owner owner = new Owner();
        update(owner, input);
        return OwnerView.of(owners.save(owner));
    }

    public void updateOwner(int id, OwnerInput input) {
        update(found(owners.findById(id)), input);
    }

    public PetView addPet(int ownerId, PetInput input) {
        Pet pet = new Pet(found(owners.findById(ownerId)));
        update(pet, input);
        return PetView.of(pets.save(pet));
    }

    public void updatePet(int ownerId, int petId, PetInput input) {
        update(found(pets.findByIdAndOwnerId(petId, ownerId)), input);
    }

    private static void update(Owner owner, OwnerInput input) {
        owner.update(
                input.firstName(),
                input.lastName(),
                input.address(),
                input.city(),
                input.telephone());
    }

    private void update(Pet pet, PetInput input) {
        // The path names what must be there; a type is input, so that an unknown one is bad input.
        PetType type = types.findById(input.typeId())
                .orElseThrow(() -> new ResponseStatusException(HttpStatus.BAD_REQUEST));
        pet.update(input.name(), input.birthDate(), type);
    }

    private static <T> T found(Optional<T> row) {
        return row.orElseThrow(() -> new ResponseStatusException(HttpStatus.NOT_FOUND));
    }
}
