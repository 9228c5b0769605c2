package prony;

import org.springframework.data.jpa.repository.JpaRepository;

interface PetTypes extends JpaRepository<PetType, Integer> {
}
