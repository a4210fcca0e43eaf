SELECT COUNT(DISTINCT p.id_seduta) AS coronarografie_diagnostiche
FROM dm.fact_procedure AS p
JOIN dm.dim_procedura AS d ON d.id_tipo_procedura = p.id_tipo_procedura
JOIN dm.dim_tempo AS t ON t.id_tempo = p.id_tempo
WHERE d.codice_icd9cm IN ('88.55', '88.56', '88.57')
  AND p.esito = 'COMPLETATA'
  AND t.anno = 2025
  AND t.mese BETWEEN 1 AND 6
  AND NOT EXISTS (
      SELECT 1
      FROM dm.fact_procedure AS q
      JOIN dm.dim_procedura AS c ON c.id_tipo_procedura = q.id_tipo_procedura
      WHERE q.id_seduta = p.id_seduta
        AND c.categoria = 'PTCA'
  );
