WITH nyha AS (
    SELECT DISTINCT ON (v.id_paziente) v.id_paziente, v.classe_nyha
    FROM dm.fact_visite_ambulatoriali AS v
    WHERE v.stato_visita = 'EROGATA'
      AND v.classe_nyha IS NOT NULL
    ORDER BY v.id_paziente, v.data_visita DESC
)
SELECT n.classe_nyha, COUNT(*) AS pazienti
FROM nyha AS n
JOIN dm.dim_paziente AS p ON p.id_paziente = n.id_paziente
WHERE p.flag_attivo = TRUE
  AND n.classe_nyha IN (3, 4)
GROUP BY n.classe_nyha
ORDER BY n.classe_nyha;
