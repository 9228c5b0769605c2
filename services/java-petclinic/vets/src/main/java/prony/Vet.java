package prony;

import jakarta.persistence.Entity;
import jakarta.persistence.FetchType;
import jakarta.persistence.Id;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.JoinTable;
import jakarta.persistence.ManyToMany;
import jakarta.persistence.OrderBy;
import jakarta.persistence.Table;
import java.util.ArrayList;
import java.util.List;

/** A vet. The specialties are read by a statement for each vet: see VetResource. */
@Entity
@Table(name = "vets")
class Vet {

    @Id
    private Integer id;

    private String firstName;

    private String lastName;

    @ManyToMany(fetch = FetchType.EAGER)
    @JoinTable(
            name = "vet_specialties",
            joinColumns = @JoinColumn(name = "vet_id"),
            inverseJoinColumns = @JoinColumn(name = "specialty_id"))
    @OrderBy("id")
    private List<Specialty> specialties = new ArrayList<>();

    Integer id() {
        return id;
    }

    String firstName() {
        return firstName;
    }

    String lastName() {
        return lastName;
    }

    List<Specialty> specialties() {
        return specialties;
    }
}
