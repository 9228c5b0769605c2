package prony;

import java.util.List;
import org.springframework.data.jpa.repository.JpaRepository;
import org.springframework.data.jpa.repository.Query;

interface Owners extends JpaRepository<Owner, Integer> {

    /** All owners with their pets, by one statement. */
    @Query("select o from Owner o left join fetch o.pets p left join fetch p.type order by o.id")
    List<Owner> findAllWithPets();
}
