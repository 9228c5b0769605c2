package prony;

import java.util.List;
import org.springframework.data.jpa.repository.JpaRepository;

interface Vets extends JpaRepository<Vet, Integer> {

    List<Vet> findAllByOrderById();
}
