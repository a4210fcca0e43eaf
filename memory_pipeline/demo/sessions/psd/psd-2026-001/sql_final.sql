SELECT COUNT(DISTINCT p.id_paziente) AS pazienti_in_carico
FROM dm.dim_paziente AS p
JOIN dm.fact_visite_ambulatoriali AS v ON v.id_paziente = p.id_paziente
JOIN dm.dim_ambulatorio AS a ON a.id_ambulatorio = v.id_ambulatorio
WHERE p.flag_attivo = TRUE
  AND a.codice_ambulatorio = 'SCC'
  AND v.stato_visita = 'EROGATA'
  AND v.data_visita >= CURRENT_DATE - INTERVAL '12 months';
