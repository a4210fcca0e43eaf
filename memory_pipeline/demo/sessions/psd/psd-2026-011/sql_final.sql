SELECT COUNT(DISTINCT i.id_paziente) AS pazienti_in_monitoraggio
FROM dm.fact_impianti AS i
JOIN dm.dim_dispositivo AS d ON d.id_dispositivo = i.id_dispositivo
JOIN dm.fact_controlli_dispositivo AS c ON c.id_impianto = i.id_impianto
WHERE i.data_espianto IS NULL
  AND d.tipo_dispositivo IN ('ICD', 'CRT-D')
  AND c.modalita = 'REMOTO'
  AND c.data_controllo >= CURRENT_DATE - 180;
