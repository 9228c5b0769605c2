package prony;

import java.util.Optional;
import org.springframework.data.jpa.repository.JpaRepository;

interface Pets extends JpaRepository<Pet, Integer> {

    Optional<Pet> findByIdAndOwnerId(int id, int ownerId);
}
