SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (
        ORDER BY EXTRACT(YEAR FROM AGE(CURRENT_DATE, p.data_nascita))
    ) AS eta_mediana
FROM dm.dim_paziente AS p
WHERE p.flag_attivo = TRUE
  AND EXISTS (
      SELECT 1
      FROM dm.fact_impianti AS i
      JOIN dm.dim_dispositivo AS d ON d.id_dispositivo = i.id_dispositivo
      WHERE i.id_paziente = p.id_paziente
        AND i.data_espianto IS NULL
        AND d.tipo_dispositivo IN ('ICD', 'CRT-D')
  );
