package prony;

import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.Table;
import java.time.LocalDate;

/** A pet, which has one owner for life. */
@Entity
@Table(name = "pets")
class Pet {

    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    private Integer id;

    private String name;

    private LocalDate birthDate;

    @ManyToOne
    private PetType type;

    @ManyToOne
    private Owner owner;

    protected Pet() {
    }

    Pet(Owner owner) {
        this.owner = owner;
    }

    Integer id() {
        return id;
    }

    String name() {
        return name;
    }

    LocalDate birthDate() {
        return birthDate;
    }

    PetType type() {
        return type;
    }

    void update(String name, LocalDate birthDate, PetType type) {
        this.name = name;
        this.birthDate = birthDate;
        this.type = type;
    }
}
