SELECT COUNT(*) AS studi_senza_ablazione
FROM dm.fact_procedure AS p
JOIN dm.dim_procedura AS d ON d.id_tipo_procedura = p.id_tipo_procedura
WHERE d.codice_icd9cm = '37.26'
  AND p.esito = 'COMPLETATA'
  AND p.data_procedura >= DATE '2024-01-01'
  AND p.data_procedura < DATE '2025-01-01'
  AND NOT EXISTS (
      SELECT 1
      FROM dm.fact_procedure AS a
      JOIN dm.dim_procedura AS c ON c.id_tipo_procedura = a.id_tipo_procedura
      WHERE a.id_seduta = p.id_seduta
        AND c.codice_icd9cm = '37.34'
        AND a.esito = 'COMPLETATA'
  );
