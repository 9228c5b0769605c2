-- H2 and PostgreSQL both read this. Dropping first makes every start equal.
DROP TABLE IF EXISTS vet_specialties;
DROP TABLE IF EXISTS specialties;
DROP TABLE IF EXISTS vets;

CREATE TABLE vets (
  id         INTEGER PRIMARY KEY,
  first_name VARCHAR(30) NOT NULL,
  last_name  VARCHAR(30) NOT NULL
);

CREATE TABLE specialties (
  id   INTEGER PRIMARY KEY,
  name VARCHAR(80) NOT NULL
);

CREATE TABLE vet_specialties (
  vet_id       INTEGER NOT NULL REFERENCES vets (id),
  specialty_id INTEGER NOT NULL REFERENCES specialties (id),
  PRIMARY KEY (vet_id, specialty_id)
);
