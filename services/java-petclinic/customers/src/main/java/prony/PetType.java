package prony;

import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.Table;

/** A kind of animal. The clinic knows six and never learns another. */
@Entity
@Table(name = "types")
class PetType {

    @Id
    private Integer id;

    private String name;

    Integer id() {
        return id;
    }

    String name() {
        return name;
    }
}
