package prony;

import jakarta.validation.Valid;
import java.util.List;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.PutMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;
import prony.Views.OwnerInput;
import prony.Views.OwnerView;
import prony.Views.PetInput;
import prony.Views.PetView;

@RestController
@RequestMapping("/owners")
class OwnerResource {

    private final CustomerService customers;

    OwnerResource(CustomerService customers) {
        this.customers = customers;
    }

    @GetMapping
    List<OwnerView> owners() {
        return customers.owners();
    }

    @GetMapping("/{id}")
    OwnerView owner(@PathVariable int id) {
        return customers.owner(id);
    }

    @PostMapping
    @ResponseStatus(HttpStatus.CREATED)
    OwnerView addOwner(@Valid @RequestBody OwnerInput input) {
        return customers.addOwner(input);
    }

    @PutMapping("/{id}")
    @ResponseStatus(HttpStatus.NO_CONTENT)
    void updateOwner(@PathVariable int id, @Valid @RequestBody OwnerInput input) {
        customers.updateOwner(id, input);
    }

    @PostMapping("/{id}/pets")
    @ResponseStatus(HttpStatus.CREATED)
    PetView addPet(@PathVariable int id, @Valid @RequestBody PetInput input) {
        return customers.addPet(id, input);
    }

    @PutMapping("/{id}/pets/{petId}")
    @ResponseStatus(HttpStatus.NO_CONTENT)
    void updatePet(
            @PathVariable int id, @PathVariable int petId, @Valid @RequestBody PetInput input) {
        customers.updatePet(id, petId, input);
    }
}
