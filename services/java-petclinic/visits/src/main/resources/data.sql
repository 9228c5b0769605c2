INSERT INTO visits (id, pet_id, visit_date, description) VALUES
  (1, 7, DATE '2013-01-01', 'rabies shot'),
  (2, 8, DATE '2013-01-02', 'rabies shot'),
  (3, 8, DATE '2013-01-03', 'neutered'),
  (4, 7, DATE '2013-01-04', 'spayed');
ALTER TABLE visits ALTER COLUMN id RESTART WITH 5;
