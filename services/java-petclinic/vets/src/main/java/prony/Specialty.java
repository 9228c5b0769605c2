package prony;

import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.Table;

/** What a vet may be a specialist in. */
@Entity
@Table(name = "specialties")
class Specialty {

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
