package prony;

import java.util.Collection;
import java.util.List;
import org.springframework.data.jpa.repository.JpaRepository;

interface Visits extends JpaRepository<Visit, Integer> {

    List<Visit> findByPetIdInOrderById(Collection<Integer> petIds);
}
