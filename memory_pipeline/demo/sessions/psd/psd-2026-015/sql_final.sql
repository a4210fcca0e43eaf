SELECT COUNT(DISTINCT g.id_paziente) AS pazienti_in_doac
FROM dm.fact_diagnosi AS g
JOIN dm.fact_terapia AS t ON t.id_paziente = g.id_paziente
WHERE g.codice_icd9cm = '427.31'
  AND t.codice_atc IN ('B01AE07', 'B01AF01', 'B01AF02', 'B01AF03')
  AND (t.data_fine IS NULL OR t.data_fine >= CURRENT_DATE)
  AND NOT EXISTS (
      SELECT 1
      FROM dm.fact_diagnosi AS v
      WHERE v.id_paziente = g.id_paziente
        AND v.codice_icd9cm IN ('394.0', '394.2', '396.0', '396.1', 'V43.3')
  );
